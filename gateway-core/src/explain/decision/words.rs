//! Decisions in the contract's words.

use jiff::Timestamp;

use crate::handoff::carriage::Carriage;
use crate::switch::admission::{Admission, AdmissionWait, AdmitReason};
use crate::switch::decide::{
    Decision, HoldReason, NoopReason, ProceedReason, SwitchReason, WaitReason,
};
use crate::switch::facts::{Selection, ThreadStatus};
use crate::switch::recovery::{CancelReason, Recovery, SwitchBack};

/// A decision as a verdict says it.
#[derive(Default)]
pub(super) struct Said<'s> {
    pub(super) decision: &'static str,
    pub(super) reason: &'static str,
    /// The chain's entry to use next.
    pub(super) entry: Option<usize>,
    /// The work runs on what it asked for.
    pub(super) stays: bool,
    /// What the person named.
    pub(super) selection: Option<&'s Selection>,
    pub(super) until: Option<Timestamp>,
    pub(super) budget_tokens: Option<u64>,
    pub(super) warning: Option<&'static str>,
}

impl Said<'_> {
    pub(super) fn switches(&self) -> bool {
        self.decision == "switch"
    }

    fn plain(decision: &'static str, reason: &'static str) -> Self {
        Self {
            decision,
            reason,
            ..Self::default()
        }
    }
}

/// What can be said in the contract's words.
pub(super) trait Words {
    fn said(&self) -> Said<'static>;
}

impl Words for Decision {
    fn said(&self) -> Said<'static> {
        match *self {
            Self::Proceed(reason) => Said::plain("proceed", proceed(reason)),
            Self::Switch(reason, position) => Said {
                entry: Some(position),
                ..Said::plain("switch", switch(reason))
            },
            Self::Wait(reason, until) => Said {
                until,
                ..Said::plain("wait", wait(reason))
            },
            Self::Hold(reason) => Said::plain("hold", hold(reason)),
            Self::Drain => Said::plain("drain", "tool_in_flight"),
            Self::Abort => Said::plain("abort", "drain_timeout"),
            Self::Interrupt => Said::plain("interrupt", "exhausted"),
            Self::MarkGuard => Said::plain("mark_guard", "warning"),
            Self::Noop(reason) => Said::plain("noop", noop(reason)),
        }
    }
}

fn proceed(reason: ProceedReason) -> &'static str {
    match reason {
        ProceedReason::WithinBudget => "within_budget",
        ProceedReason::NoFreshReading => "no_fresh_reading",
        ProceedReason::ResetImminent => "reset_imminent",
        ProceedReason::Cap => "cap",
        ProceedReason::NoCandidate => "no_candidate",
        ProceedReason::Undone => "undone",
        ProceedReason::Disabled => "disabled",
        ProceedReason::Inactive(status) => inactive(status),
    }
}

fn switch(reason: SwitchReason) -> &'static str {
    match reason {
        SwitchReason::Exhausted => "exhausted",
        SwitchReason::Predicted => "predicted",
        SwitchReason::HardGuard => "hard_guard",
    }
}

fn wait(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::ResetImminent => "reset_imminent",
        WaitReason::NoCandidate => "no_candidate",
        WaitReason::Cap => "cap",
        WaitReason::CheaperThanPaid => "cheaper_than_paid",
        WaitReason::ResetRecovery => "reset_recovery",
    }
}

fn hold(reason: HoldReason) -> &'static str {
    match reason {
        HoldReason::ResetUnknown => "reset_unknown",
        HoldReason::Cap => "cap",
        HoldReason::ApprovalPending => "approval_pending",
        HoldReason::NoInterruptAck => "no_interrupt_ack",
    }
}

fn noop(reason: NoopReason) -> &'static str {
    match reason {
        NoopReason::NotQuota => "not_quota",
        NoopReason::Superseded => "superseded",
        NoopReason::Inactive(status) => inactive(status),
        NoopReason::Disabled => "disabled",
        NoopReason::Allowed => "allowed",
        NoopReason::Overage => "overage",
        NoopReason::NotApplicable => "not_applicable",
        NoopReason::TurnCompleted => "turn_completed",
        NoopReason::Interrupting => "interrupting",
    }
}

fn inactive(status: ThreadStatus) -> &'static str {
    match status {
        ThreadStatus::Active => "active",
        ThreadStatus::Paused => "paused",
        ThreadStatus::Archived => "archived",
        ThreadStatus::Settled => "settled",
    }
}

impl Words for Admission {
    fn said(&self) -> Said<'static> {
        match *self {
            Self::Cancelled => Said::plain("cancelled", "cancelled"),
            Self::Duplicate => Said::plain("noop", "duplicate_request"),
            Self::Refuse(reason) => Said::plain("refuse", reason.word()),
            Self::Admit(reason) => Said {
                stays: true,
                ..Said::plain(
                    "admit",
                    match reason {
                        AdmitReason::Capacity => "capacity",
                        AdmitReason::Disabled => "disabled",
                    },
                )
            },
            Self::Fallback(reason, position) => Said {
                entry: Some(position),
                ..Said::plain("admit_fallback", reason.word())
            },
            Self::Wait(reason, until) => Said {
                until,
                ..Said::plain(
                    "wait_capacity",
                    match reason {
                        AdmissionWait::Target(reason) => reason.word(),
                        AdmissionWait::CheaperThanPaid => "cheaper_than_paid",
                    },
                )
            },
            Self::Expired => Said::plain("fail", "capacity_wait_expired"),
        }
    }
}

impl Words for Recovery {
    fn said(&self) -> Said<'static> {
        let until = |reason, until| Said {
            until: Some(until),
            ..Said::plain("wait", reason)
        };
        match *self {
            Self::Cancel(reason) => Said::plain(
                "cancel_wait",
                match reason {
                    CancelReason::SelectionChanged => "selection_changed",
                    CancelReason::Superseded => "superseded",
                    CancelReason::Archived => "archived",
                    CancelReason::Settled => "settled",
                },
            ),
            Self::Paused => Said::plain("noop", "paused"),
            Self::NotWaiting => Said::plain("noop", "not_waiting"),
            Self::StillExhausted(at) => until("still_exhausted", at),
            Self::Armed(at) => until("armed", at),
            Self::Hold => Said::plain("hold", "reset_unknown"),
            Self::Resume => Said::plain("resume", "reset"),
        }
    }
}

impl Words for SwitchBack {
    fn said(&self) -> Said<'static> {
        match *self {
            Self::Duplicate => Said::plain("noop", "duplicate_request"),
            Self::Refuse(reason) => Said::plain("refuse", reason.word()),
            Self::Switch { still_limited } => Said {
                warning: still_limited.then_some("still_limited"),
                ..Said::plain("switch", "user")
            },
        }
    }
}

impl Words for Carriage {
    fn said(&self) -> Said<'static> {
        let within = |decision, reason, tokens| Said {
            budget_tokens: Some(tokens),
            ..Said::plain(decision, reason)
        };
        match *self {
            Self::ReplaceNative => Said::plain("replace_native", "delivery_ambiguous"),
            Self::NativeResume => Said::plain("native_resume", "native_resume"),
            Self::Delta(tokens) => within("handoff_delta", "returning", tokens),
            Self::Handoff(tokens) => within("handoff", "budget", tokens),
            Self::Pointer(tokens) => within("handoff_pointer", "budget_too_small", tokens),
            Self::TooLarge => Said::plain("refuse", "context_too_small"),
        }
    }
}
