//! What it costs to judge one failure: unwrap, read the words, find the reset. The public reports of
//! `cases/failures.jsonl`, each as it came; the target is 20 µs for the median report.

use std::hint::black_box;
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use gateway_core::failure::{Context, Evidence, Headers, judge};
use jiff::Timestamp;
use serde_json::Value;

/// One report: what a provider would hand over.
enum Report {
    Answer(u16, Headers, String),
    Text(String),
}

fn report(line: &str) -> Option<(Report, Timestamp)> {
    let case: Value = serde_json::from_str(line).expect("the cases are JSON");
    let now = case.get("now")?.as_str()?.parse().expect("an instant");
    let input = case.get("input")?;
    let body = match input.get("body") {
        Some(Value::String(text)) => Some(text.clone()),
        Some(body) => Some(body.to_string()),
        None => input.get("text").and_then(Value::as_str).map(str::to_owned),
    };
    let headers = input.get("headers").and_then(Value::as_object);
    let headers = headers.into_iter().flatten();
    let headers = headers.filter_map(|(name, value)| Some((name, value.as_str()?)));
    let report = match input.get("status").and_then(Value::as_u64) {
        Some(status) => {
            let status = u16::try_from(status).ok()?;
            Report::Answer(status, headers.collect(), body.unwrap_or_default())
        }
        None => Report::Text(body?),
    };
    Some((report, now))
}

fn judged(report: &Report, now: Timestamp) {
    let evidence = match report {
        Report::Answer(status, headers, body) => {
            Evidence::of_answer(*status, headers.clone(), body)
        }
        Report::Text(text) => Evidence::of_text(text),
    };
    black_box(judge(&evidence, &Context::at(now), None));
}

fn classify(c: &mut Criterion) {
    let lines = include_str!("../cases/failures.jsonl").lines();
    let reports: Vec<(Report, Timestamp)> = lines.filter_map(report).collect();
    let mut group = c.benchmark_group("classify one failure");
    let mut costs: Vec<(u64, usize)> = reports
        .iter()
        .map(|(report, now)| cost_ns(report, *now))
        .zip(0..)
        .collect();
    costs.sort_unstable();
    for (name, at) in [
        ("the cheapest report", 0),
        ("the median report", costs.len() / 2),
        ("the dearest report", costs.len() - 1),
    ] {
        let (report, now) = costs
            .get(at)
            .and_then(|(_, number)| reports.get(*number))
            .expect("there are reports");
        group.bench_function(name, |b| b.iter(|| judged(report, *now)));
    }
    let mut next = reports.iter().cycle();
    group.bench_function("any report, in turn", |b| {
        b.iter(|| {
            if let Some((report, now)) = next.next() {
                judged(report, *now);
            }
        });
    });
    group.finish();
}

/// The best of many rounds, for the order of the reports only.
fn cost_ns(report: &Report, now: Timestamp) -> u64 {
    let rounds = (0..200).map(|_| {
        let start = Instant::now();
        judged(report, now);
        start.elapsed().as_nanos()
    });
    rounds
        .min()
        .and_then(|best| u64::try_from(best).ok())
        .unwrap_or_default()
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(50);
    targets = classify
}
criterion_main!(benches);
