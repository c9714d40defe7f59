//! Bounds.

use super::*;

fn record(number: u64, value: usize) -> WriteRecord {
    let field = FieldChange { path: "tags.a".into(), old: None, new: Some("x".repeat(value)) };
    WriteRecord {
        number,
        method: "PUT",
        target: ResourceId::new("/subscriptions/s/resourceGroups/g/providers/n/t/r"),
        correlation: Arc::from(format!("c{number}")),
        attempt: 1,
        sent_ms: number,
        ended_ms: None,
        outcome: WriteOutcome::UnderWay,
        services: Arc::default(),
        gateways: Arc::default(),
        fields: Few { shown: vec![field], more: 0 },
        causes: Few { shown: Vec::new(), more: 0 },
    }
}

fn numbers(history: &History) -> (u64, u64, usize) {
    let number = |record: Option<&Arc<WriteRecord>>| record.map_or(0, |record| record.number);
    let held = &history.records;
    (number(held.front()), number(held.back()), held.len())
}

#[test]
fn a_thousand_writes_are_held_and_the_oldest_goes_first() {
    let mut history = History::default();
    (1..=1_005).for_each(|number| history.push(record(number, 10)));
    assert_eq!(numbers(&history), (6, 1_005, RECORDS));
}

/// Each is caused by an edit of its own.
#[test]
fn edits_count_among_what_a_write_takes() {
    let mut history = History::default();
    for number in 1..=RECORDS as u64 {
        let field = FieldChange { path: "a".into(), old: None, new: Some("x".repeat(100_000)) };
        let edit = Edit {
            service: ServiceName::new("default", "web"),
            seen_ms: number,
            fields: vec![field],
            editors: None,
        };
        let mut record = record(number, 10);
        record.causes.shown.push(Cause::Edit(Arc::new(edit)));
        history.push(record);
    }
    assert!(history.records.len() < 170, "{} writes are held", history.records.len());
}

#[test]
fn large_writes_are_held_up_to_sixteen_megabytes() {
    let mut history = History::default();
    (1..=40).for_each(|number| history.push(record(number, 1 << 20)));
    let (first, last, count) = numbers(&history);
    assert_eq!((first, last, count), (26, 40, 15));
    assert!(history.bytes <= BYTES);
    // One that ends is counted once, with what Azure said.
    let before = history.bytes;
    history.end("c40", WriteOutcome::Done, 50);
    assert_eq!(history.bytes, before);
    let message = Arc::from("m".repeat(100));
    let failed = WriteOutcome::Failed { status: 409, code: Arc::from("Busy"), message };
    history.end("c39", failed, 60);
    assert_eq!(history.bytes, before + 100);
    assert_eq!(history.records[14].ended_ms, Some(50));
}
