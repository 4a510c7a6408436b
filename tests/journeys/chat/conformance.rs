//! The suite: every row on every platform. A row that says nothing about a platform is named there with its reason, and
//! says so when it is skipped.

use support::chat::{ChatUnderTest, ConsoleRoom, DiscordRoom, SlackRoom};

use super::rows;

/// Why the row says nothing about this platform; `None` = it does.
fn skipped<C: ChatUnderTest>(row: &str) -> bool {
    let skip = C::SKIPS.iter().find(|(name, _)| *name == row);
    if let Some((_, why)) = skip {
        println!("SKIPPED on the {}: {why}", C::NAME);
    }
    skip.is_some()
}

macro_rules! conformance {
    ($($row:ident),* $(,)?) => {
        conformance!(@on discord, DiscordRoom, $($row),*);
        conformance!(@on slack, SlackRoom, $($row),*);
        conformance!(@on console, ConsoleRoom, $($row),*);

        #[test]
        fn what_is_skipped_exists_and_the_chat_platforms_skip_nothing() {
            let rows = [$(stringify!($row)),*];
            let skips = [DiscordRoom::SKIPS, SlackRoom::SKIPS, ConsoleRoom::SKIPS];
            for (name, why) in skips.concat() {
                assert!(rows.contains(&name) && !why.is_empty(), "{name}");
            }
            assert!(DiscordRoom::SKIPS.is_empty() && SlackRoom::SKIPS.is_empty());
        }
    };
    (@on $platform:ident, $room:ty, $($row:ident),*) => {
        mod $platform {
            use super::*;

            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $row() {
                    if !skipped::<$room>(stringify!($row)) {
                        rows::$row::<$room>().await;
                    }
                }
            )*
        }
    };
}

conformance!(
    a_command_is_answered_to_its_asker_alone,
    two_previews_consume_nothing_and_the_next_turn_carries_once,
    a_long_answer_comes_in_whole_pieces,
    a_very_long_answer_ends_with_a_file,
    a_stream_is_few_edits_and_one_final_text,
    model_text_pings_nobody,
    everything_delivered_twice_is_answered_once,
    a_button_pressed_twice_acts_once,
    a_button_works_after_a_restart,
    what_is_asked_in_a_thread_is_answered_there,
    nothing_waits_for_a_slow_model,
    a_rate_limit_in_a_stream_loses_nothing,
    the_status_line_stands_once,
    a_stranger_gets_one_line_and_no_model,
    a_denied_channel_gets_silence,
);
