//! What is known of two logins: one quota, two quotas, or neither proven (note N9 of the decision contract). The gate counts
//! what is proven to be one ([`QuotaGroups`]); a switch needs more: proof that the other login is *another* quota, or the
//! work would move to the allowance it just ran out of under another name.

use std::collections::{HashMap, HashSet};

use super::identity::{Login, QuotaGroups};

/// What is known of two logins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kinship {
    /// They draw on one allowance.
    Same,
    /// They draw on two.
    Separate,
    /// Neither is proven.
    Unproven,
}

/// What is known of every quota group, gathered from all its logins: what one row of a hub tells of a login counts for the
/// direct row of the same login too.
#[derive(Debug)]
pub struct Kinships<'l> {
    groups: &'l QuotaGroups,
    profiles: HashMap<&'l str, Profile<'l>>,
}

/// Every known key of a group's logins.
#[derive(Debug, Default)]
struct Profile<'l> {
    upstreams: Vec<&'l str>,
    accounts: Vec<&'l str>,
    fingerprints: Vec<&'l str>,
    mails: Vec<&'l str>,
    plans: Vec<&'l str>,
}

impl<'l> Kinships<'l> {
    /// Gathers what is known.
    pub fn of(logins: impl IntoIterator<Item = &'l Login>, groups: &'l QuotaGroups) -> Self {
        let mut profiles: HashMap<_, Profile<'_>> = HashMap::new();
        for login in logins {
            let profile = profiles.entry(groups.head(&login.id)).or_default();
            profile.upstreams.extend(login.upstream.as_deref());
            profile.accounts.extend(login.account_id.as_deref());
            profile.fingerprints.extend(login.fingerprint.as_deref());
            profile.mails.extend(login.email.as_deref());
            profile.plans.extend(login.plan.as_deref());
        }
        Self { groups, profiles }
    }

    /// Compares two logins. An equal strong key outranks whatever differs; then keys of one kind that have nothing in common
    /// separate.
    pub fn between(&self, a: &Login, b: &Login) -> Kinship {
        let (one, two) = (self.groups.head(&a.id), self.groups.head(&b.id));
        if one == two {
            return Kinship::Same;
        }
        if a.metered != b.metered {
            return Kinship::Separate;
        }
        match (self.profiles.get(one), self.profiles.get(two)) {
            (Some(one), Some(two)) if one.is_apart_from(two) => Kinship::Separate,
            _ => Kinship::Unproven,
        }
    }
}

impl Profile<'_> {
    fn is_apart_from(&self, other: &Self) -> bool {
        if are_apart(&self.upstreams, &other.upstreams) {
            return true;
        }
        if meet(&self.accounts, &other.accounts) || meet(&self.fingerprints, &other.fingerprints) {
            // Equal keys that did not join them: the company of one is not known.
            return false;
        }
        are_apart(&self.accounts, &other.accounts)
            || are_apart(&self.fingerprints, &other.fingerprints)
            || are_apart(&self.mails, &other.mails)
            || (self.is_weak() && other.is_weak() && self.are_two_plans(other))
    }

    fn is_weak(&self) -> bool {
        self.accounts.is_empty() && self.fingerprints.is_empty()
    }

    fn are_two_plans(&self, other: &Self) -> bool {
        meet(&self.mails, &other.mails) && are_apart(&self.plans, &other.plans)
    }
}

/// Both are known, and they have nothing in common.
fn are_apart(a: &[&str], b: &[&str]) -> bool {
    !a.is_empty() && !b.is_empty() && !meet(a, b)
}

/// Whether they have a key in common. Groups are small; large ones are looked up instead of compared one by one.
fn meet(a: &[&str], b: &[&str]) -> bool {
    const FEW: usize = 64;
    if a.len().saturating_mul(b.len()) <= FEW {
        return a
            .iter()
            .any(|one| b.iter().any(|two| folded(one).eq(folded(two))));
    }
    let known: HashSet<String> = a.iter().map(|one| one.to_lowercase()).collect();
    b.iter().any(|two| known.contains(&two.to_lowercase()))
}

/// Logins of hubs by their mail address. A hub lists what it has by mail; two entries with one mail and nothing else may be
/// one login listed twice, and may be two (note N10).
#[derive(Debug, Default)]
pub struct HubMails<'l> {
    by_mail: HashMap<String, Vec<&'l Login>>,
}

impl<'l> HubMails<'l> {
    /// Indexes the logins that hubs list.
    pub fn of(hub_logins: impl IntoIterator<Item = &'l Login>) -> Self {
        let mut by_mail: HashMap<String, Vec<&Login>> = HashMap::new();
        for login in hub_logins {
            if let Some(mail) = &login.email {
                by_mail.entry(mail.to_lowercase()).or_default().push(login);
            }
        }
        Self { by_mail }
    }

    /// Whether a hub's login cannot be told from another one of a hub.
    pub fn is_ambiguous(&self, login: &Login) -> bool {
        let Some(mail) = login.email.as_ref().filter(|_| !has_strong_key(login)) else {
            return false;
        };
        let namesakes = self.by_mail.get(&mail.to_lowercase());
        namesakes.into_iter().flatten().any(|other| {
            other.id != login.id
                && other.metered == login.metered
                && !differ(&other.upstream, &login.upstream)
                && !differ_folded(&other.plan, &login.plan)
        })
    }
}

fn has_strong_key(login: &Login) -> bool {
    login.account_id.is_some() || login.fingerprint.is_some()
}

fn differ(a: &Option<String>, b: &Option<String>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a != b)
}

fn differ_folded(a: &Option<String>, b: &Option<String>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if !folded(a).eq(folded(b)))
}

fn folded(text: &str) -> impl Iterator<Item = char> {
    text.chars().flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(id: &str, keys: &str) -> Login {
        let key = |name: &str| {
            let mut pairs = keys
                .split_whitespace()
                .filter_map(|key| key.split_once('='));
            pairs
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.to_owned())
        };
        Login {
            id: id.into(),
            upstream: key("up"),
            account_id: key("acc"),
            fingerprint: key("fp"),
            email: key("mail"),
            plan: key("plan"),
            metered: key("metered").is_some(),
        }
    }

    #[test]
    fn n9_one_quota_two_quotas_or_neither_proven() {
        use Kinship::{Same, Separate, Unproven};
        #[rustfmt::skip]
        let rows = [
            ("up=x acc=1", "up=x acc=1 mail=b", Same),
            ("up=x acc=1 fp=1", "up=x acc=2 fp=1", Same),
            ("up=x mail=A", "up=x mail=a plan=max", Same),
            ("up=x acc=1", "up=y acc=1", Separate),
            ("up=x acc=1", "up=x acc=1 metered=1", Separate),
            ("up=x acc=1 mail=a", "up=x acc=2 mail=a", Separate),
            ("up=x fp=1", "up=x fp=2", Separate),
            ("up=x mail=a", "up=x mail=b acc=1", Separate),
            ("up=x mail=a plan=pro", "up=x mail=A plan=max", Separate),
            ("up=x acc=1", "up=x fp=1", Unproven),
            ("up=x mail=a acc=1", "up=x mail=a", Unproven),
            ("up=x", "up=x", Unproven),
            ("up=x acc=1", "acc=1", Unproven),
            ("up=x acc=1 fp=1", "acc=2 fp=1", Unproven),
            ("up=x acc=1", "acc=2", Separate),
            ("up=x acc=1", "", Unproven),
        ];
        for (a, b, want) in rows {
            let (one, two) = (login("a", a), login("b", b));
            let groups = QuotaGroups::of(&[one.clone(), two.clone()]);
            let kin = Kinships::of([&one, &two], &groups);
            assert_eq!(kin.between(&one, &two), want, "{a} / {b}");
            assert_eq!(kin.between(&two, &one), want, "{b} / {a}");
        }
    }

    #[test]
    fn what_one_row_tells_counts_for_every_row_of_the_login() {
        use Kinship::{Separate, Unproven};
        // A twin of b joined to it by a fingerprint.
        let rows = [
            ("up=x acc=1", "up=x fp=f", "up=x fp=f acc=2", Separate),
            ("up=x mail=m", "up=x fp=f", "up=x fp=f mail=n", Separate),
            (
                "up=x mail=m",
                "up=x fp=f mail=n",
                "up=x fp=f mail=m",
                Unproven,
            ),
            ("up=x mail=m", "up=x fp=f", "up=x fp=g mail=n", Unproven),
        ];
        for (a, b, twin, want) in rows {
            let logins = [login("a", a), login("b", b), login("twin", twin)];
            let groups = QuotaGroups::of(&logins);
            let kin = Kinships::of(&logins, &groups);
            assert_eq!(
                kin.between(&logins[0], &logins[1]),
                want,
                "{a} / {b} / {twin}"
            );
        }
    }

    #[test]
    fn large_groups_compare_as_small_ones_do() {
        let names: Vec<String> = (0..100).map(|at| format!("P{at}")).collect();
        let lower: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        let (names, lower): (Vec<&str>, Vec<&str>) = (
            names.iter().map(String::as_str).collect(),
            lower.iter().map(String::as_str).collect(),
        );
        assert!(meet(&names, &lower[99..]) && meet(&lower[..2], &names));
        assert!(!meet(&names[..50], &lower[50..]));
    }

    #[test]
    fn n10_hub_logins_with_one_mail_and_nothing_else_are_ambiguous() {
        let rows = [
            ("up=x mail=a", "up=x mail=A", true),
            ("up=x mail=a", "up=x mail=a acc=1", true),
            ("up=x mail=a acc=1", "up=x mail=a", false),
            ("up=x mail=a plan=pro", "up=x mail=a plan=max", false),
            ("up=x mail=a plan=pro", "up=x mail=a", true),
            ("up=x mail=a", "up=y mail=a", false),
            ("up=x mail=a", "up=x mail=b", false),
            ("up=x mail=a", "up=x mail=a metered=1", false),
            ("up=x", "up=x", false),
        ];
        for (a, b, want) in rows {
            let (one, two) = (login("a", a), login("b", b));
            let mails = HubMails::of([&one, &two]);
            assert_eq!(mails.is_ambiguous(&one), want, "{a} / {b}");
        }
    }
}
