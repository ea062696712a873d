use std::sync::Arc;

use super::{Batch, Bus, BusLimits, Subscription, TooManyStreams};

fn bus(events: usize, sessions: usize) -> Arc<Bus> {
    let limits = BusLimits { events, bytes: 1_000, sessions, streams_per_session: 2, streams: 3 };
    Bus::new("boot", limits)
}

fn say(bus: &Bus, session: &str, text: &str) {
    bus.publish(session, "test", |_, _| text.to_owned());
}

async fn texts(subscription: &mut Subscription) -> Vec<String> {
    match subscription.next().await {
        Some(Batch::Events(events)) => events.iter().map(|event| event.data.clone()).collect(),
        other => panic!("expected events, got {other:?}"),
    }
}

#[tokio::test]
async fn a_reader_gets_what_comes_after_it_subscribed() {
    let bus = bus(10, 10);
    say(&bus, "a", "early");
    let mut reader = bus.subscribe("a", None).unwrap();
    say(&bus, "a", "one");
    say(&bus, "b", "elsewhere");
    say(&bus, "a", "two");
    assert_eq!(texts(&mut reader).await, ["one", "two"]);
    assert_eq!(reader.cursor(), "boot-1:3");
}

#[tokio::test]
async fn a_waiting_reader_is_woken() {
    let bus = bus(10, 10);
    let mut reader = bus.subscribe("a", None).unwrap();
    let waiting = tokio::spawn(async move { texts(&mut reader).await });
    tokio::task::yield_now().await;
    say(&bus, "a", "one");
    assert_eq!(waiting.await.unwrap(), ["one"]);
}

#[tokio::test]
async fn a_reader_that_comes_back_gets_what_it_missed() {
    let bus = bus(10, 10);
    for text in ["one", "two", "three"] {
        say(&bus, "a", text);
    }
    let mut reader = bus.subscribe("a", Some("boot-1:1")).unwrap();
    assert_eq!(texts(&mut reader).await, ["two", "three"]);
}

#[tokio::test]
async fn an_id_of_another_epoch_or_a_lost_one_resets() {
    let bus = bus(2, 10);
    for text in ["one", "two", "three", "four"] {
        say(&bus, "a", text);
    }
    for (id, expected) in [
        ("other:1", "epoch-change"),
        ("nonsense", "epoch-change"),
        ("boot-1:x", "epoch-change"),
        ("boot-1:1", "gap"),
        ("boot-1:99", "gap"),
        ("boot-1:18446744073709551615", "gap"),
    ] {
        let mut reader = bus.subscribe("a", Some(id)).unwrap();
        match reader.next().await {
            Some(Batch::Reset { reason, oldest, latest, cursor, .. }) => {
                assert_eq!((reason, oldest, latest, cursor.as_str()), (expected, 3, 4, "boot-1:4"), "{id}");
            }
            other => panic!("{id}: {other:?}"),
        }
        say(&bus, "b", "unrelated");
    }
    // The oldest id from which nothing is missing.
    let mut reader = bus.subscribe("a", Some("boot-1:2")).unwrap();
    assert_eq!(texts(&mut reader).await, ["three", "four"]);
}

#[tokio::test]
async fn a_reader_overtaken_by_the_ring_is_told() {
    let bus = bus(2, 10);
    let mut reader = bus.subscribe("a", None).unwrap();
    for text in ["one", "two", "three"] {
        say(&bus, "a", text);
    }
    assert!(matches!(reader.next().await, Some(Batch::Reset { reason: "gap", latest: 3, .. })));
    say(&bus, "a", "four");
    assert_eq!(texts(&mut reader).await, ["four"]);
}

#[tokio::test]
async fn bytes_are_bounded_but_the_newest_event_stays() {
    let bus = bus(100, 10);
    let large = "x".repeat(2_000);
    say(&bus, "a", "one");
    say(&bus, "a", &large);
    let mut reader = bus.subscribe("a", Some("boot-1:1")).unwrap();
    assert_eq!(texts(&mut reader).await, [large]);
}

#[test]
fn readers_are_counted_and_given_back() {
    let bus = bus(10, 10);
    let first = bus.subscribe("a", None).unwrap();
    let _second = bus.subscribe("a", None).unwrap();
    assert_eq!(bus.subscribe("a", None).err(), Some(TooManyStreams));
    let _third = bus.subscribe("b", None).unwrap();
    assert_eq!(bus.subscribe("c", None).err(), Some(TooManyStreams));
    drop(first);
    assert!(bus.subscribe("a", None).is_ok());
}

#[tokio::test]
async fn a_removed_session_ends_its_readers_and_frees_their_places() {
    let bus = bus(10, 10);
    let mut reader = bus.subscribe("a", None).unwrap();
    let _other = bus.subscribe("a", None).unwrap();
    bus.remove("a");
    assert!(reader.next().await.is_none());
    // The old readers' places were given back once, not twice.
    let _fresh = (bus.subscribe("a", None).unwrap(), bus.subscribe("a", None).unwrap());
    drop(reader);
    assert_eq!(bus.subscribe("a", None).err(), Some(TooManyStreams));
}

#[tokio::test]
async fn idle_sessions_are_forgotten_oldest_first_and_never_those_with_readers() {
    let bus = bus(10, 2);
    let mut reader = bus.subscribe("read", None).unwrap();
    say(&bus, "read", "kept");
    say(&bus, "idle", "old");
    say(&bus, "new", "newer");
    say(&bus, "newest", "newest");
    assert_eq!(texts(&mut reader).await, ["kept"]);
    let mut back = bus.subscribe("idle", Some("boot-2:0")).unwrap();
    assert!(matches!(back.next().await, Some(Batch::Reset { reason: "epoch-change", .. })));
}
