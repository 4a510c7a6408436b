//! plugin-api
