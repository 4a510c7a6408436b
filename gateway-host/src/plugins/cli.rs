//! What `baton plugin …` does, as functions from arguments to a text and an exit code; printing is the caller's.
