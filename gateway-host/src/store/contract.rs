//! One suite for every store. Each case runs against the one in memory, the one on disk, and the one on disk opened anew
//! before every single call, which stands for a restart after each step.

mod actions;
mod claims;
mod conversations;
mod generations;
mod lanes;
mod model;
mod operators;
mod routing;
pub(super) mod samples;
mod turns;
mod usage;

use std::sync::Arc;

use tempfile::TempDir;

use super::Store;
use super::memory::MemoryStore;
use super::sqlite::SqliteStore;

/// Where the store under test lives.
enum Place {
    Memory(Arc<dyn Store>),
    Disk(
        Arc<dyn Store>,
        #[expect(dead_code, reason = "kept until the end")] TempDir,
    ),
    Restarted(TempDir),
}

impl Place {
    fn memory() -> Self {
        Self::Memory(Arc::new(MemoryStore::new()))
    }

    async fn disk() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path().join("baton.db"))
            .await
            .unwrap();
        Self::Disk(Arc::new(store), dir)
    }

    fn restarted() -> Self {
        Self::Restarted(tempfile::tempdir().unwrap())
    }

    /// The store; for a restarted one, as the next process finds it.
    async fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Memory(store) | Self::Disk(store, _) => Arc::clone(store),
            Self::Restarted(dir) => Arc::new(
                SqliteStore::open(dir.path().join("baton.db"))
                    .await
                    .unwrap(),
            ),
        }
    }
}

/// Writes each case out three times. `in module { … }` names where the cases are.
macro_rules! contract {
    ($($module:ident { $($name:ident)* })*) => {
        mod in_memory { $($(#[tokio::test] async fn $name() { super::$module::$name(&super::Place::memory()).await; })*)* }
        mod on_disk { $($(#[tokio::test] async fn $name() { super::$module::$name(&super::Place::disk().await).await; })*)* }
        mod restarted { $($(#[tokio::test] async fn $name() { super::$module::$name(&super::Place::restarted()).await; })*)* }
    };
}

contract! {
    lanes {
        a_message_is_new_once
        a_lane_keeps_its_session
        a_new_conversation_drops_what_waits
        an_answered_turn_is_remembered
        the_provider_session_keeps_what_it_saw
        history_is_the_newest_in_order
    }
    conversations {
        one_that_was_left_is_picked_up_as_it_was
        numbers_stay_and_the_last_used_comes_first
        another_lanes_conversation_is_no_ones_here
        what_was_asked_names_one_that_was_never_answered
        handoffs_stay_with_their_conversation
        a_turn_that_ends_late_counts_for_its_conversation
        who_took_part_is_known
    }
    actions {
        an_undo_goes_back_once
        an_undo_can_lead_to_the_chain_and_away_from_it
        a_newer_choice_ends_older_undos
        an_undo_is_of_its_conversation
        an_expired_one_does_nothing_and_is_swept_later
    }
    turns {
        a_turn_opens_once_and_keeps_its_journal
        a_message_is_seen_exactly_if_its_turn_was_opened
        only_the_owner_given_loses_its_turn
        the_sweep_expires_then_purges
        the_sweep_forgets_old_texts
        a_newer_payload_is_not_guessed_at
    }
    claims {
        armed_claimed_acked
        a_stale_claim_writes_nothing
        released_and_chained
        moves_need_the_revision_and_a_way
        an_older_armed_handoff_is_left
    }
    operators {
        a_paired_operator_stays_until_unpaired
    }
    generations {
        a_session_is_retired_once
        a_retired_session_never_comes_back
        a_session_that_did_not_fit_is_forgotten
        what_was_told_is_kept
        landmarks_lead_back_and_are_bounded
    }
    usage {
        the_newest_reading_wins
        on_equal_age_the_better_source_wins
        the_revision_grows_with_real_changes_only
        what_changed_since_is_read_alone
        what_is_ahead_of_the_clock_gives_way
        a_rollout_never_hides_what_decides
        logins_are_replaced_and_tell_others
        when_a_surface_may_be_asked_again_is_kept
    }
    routing {
        a_step_is_whole_or_nothing
        room_is_never_promised_on_old_knowledge
        the_audit_is_in_order_and_tells_the_turn
        what_is_at_rest_is_not_listed
        samples_of_burn_are_replaced
        money_is_reserved_settled_and_capped
        a_restart_after_every_step_ends_in_the_same_state
    }
}
