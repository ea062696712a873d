//! The shipped packages and the demo world, played.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use covel_exec::{DataFilter, Engine, ExecutionRequest, NewSession, Phase, RuntimeStatus, TurnDocument};
use covel_tests::{shipped, worlds};

/// What a player might say in twenty turns.
const SAYINGS: [&str; 20] = [
    "Look around",
    "Ask who rang the bell",
    "I walk down to the water",
    "Wait and listen",
    "I take the lantern",
    "Talk to the first person I meet",
    "Climb up for a better view",
    "Read what is written there",
    "I offer to help",
    "Where does this path lead?",
    "Open the door",
    "I follow the sound",
    "Ask about the weather",
    "Rest a while",
    "I go back the way I came",
    "Search the boats",
    "What day is it?",
    "I promise to return",
    "Count the bells",
    "Go on",
];

async fn session(engine: &Engine, id: &str, seed: &str, locale: Option<&str>) -> String {
    let new = NewSession {
        id: Some(id.into()),
        world_id: Some(worlds()[0].id.as_str().to_owned()),
        seed: Some(seed.into()),
        locale: locale.map(str::to_owned),
        ..NewSession::default()
    };
    engine.create_session(new).await.unwrap().id
}

async fn play(engine: &Engine, id: &str) -> Vec<TurnDocument> {
    let mut turns = Vec::new();
    for saying in SAYINGS {
        let turn = engine.execute(ExecutionRequest::player(id, saying), None).await.unwrap();
        assert!(turn.committed, "{saying}: {:?}", turn.error);
        assert!(turn.isolated.is_empty(), "{:?}", turn.isolated);
        for row in turn.runtimes.iter().chain(turn.setup.iter().flat_map(|setup| &setup.runtimes)) {
            assert_ne!(row.status, RuntimeStatus::Failed, "{saying}: {} {:?}", row.runtime_id, row.error);
        }
        turns.push(turn);
    }
    turns
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_turns_of_the_demo_world_are_twenty_different_ones() {
    let (engine, _folder) = shipped().await;
    let id = session(&engine, "a", "one", None).await;
    let turns = play(&engine, &id).await;
    let texts: BTreeSet<&str> = turns.iter().map(|turn| turn.narrative.as_str()).collect();
    assert_eq!(texts.len(), SAYINGS.len());
    assert!(texts.iter().all(|text| text.len() > 200), "{texts:#?}");

    // All five stages had work, and an event chain ran at least two deep.
    let mut stages: BTreeSet<&str> =
        turns.iter().flat_map(|turn| turn.runtimes.iter().map(|row| row.stage.as_str())).collect();
    stages.extend(turns[0].setup.as_ref().unwrap().runtimes.iter().map(|row| row.stage.as_str()));
    for stage in ["setup", "pre-turn", "narrative", "post-turn", "audit", "event"] {
        assert!(stages.contains(stage), "no {stage} in {stages:?}");
    }
    assert!(turns.iter().any(|turn| turn.events.iter().any(|event| event.depth >= 2)), "no chain of events");
    let owners: BTreeSet<String> =
        engine.data(&id, DataFilter::default()).unwrap().into_iter().map(|record| record.plugin_id).collect();
    for owner in ["dice-check", "quest-log", "weather", "world-init"] {
        assert!(owners.contains(owner), "{owner} keeps nothing; {owners:?}");
    }
    assert_eq!(engine.session(&id).unwrap().phase, Phase::Playing);

    // The same seed tells the same story, another seed another one.
    let same = session(&engine, "b", "one", None).await;
    let again: Vec<String> = play(&engine, &same).await.into_iter().map(|turn| turn.narrative).collect();
    assert_eq!(again, turns.iter().map(|turn| turn.narrative.clone()).collect::<Vec<_>>());
    let other = session(&engine, "c", "two", None).await;
    assert_ne!(play(&engine, &other).await[0].narrative, again[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chinese_session_is_told_in_chinese() {
    let (engine, _folder) = shipped().await;
    let id = session(&engine, "zh", "one", Some("zh-CN")).await;
    let turn = engine.execute(ExecutionRequest::player(&id, "看看四周"), None).await.unwrap();
    let chinese = turn.narrative.chars().filter(|c| ('\u{4e00}'..='\u{9fff}').contains(c)).count();
    assert!(chinese * 2 > turn.narrative.chars().count(), "{}", turn.narrative);
}

/// Covers: UIW-3
#[tokio::test(flavor = "multi_thread")]
async fn the_roll_command_answers_and_its_words_are_checked() {
    let (engine, _folder) = shipped().await;
    let id = session(&engine, "a", "one", None).await;
    engine.execute(ExecutionRequest::player(&id, "Look around"), None).await.unwrap();
    let commands: Vec<String> =
        engine.commands(&id).unwrap().into_iter().map(|command| command.declaration.name).collect();
    assert!(commands.contains(&"roll".to_owned()), "{commands:?}");
    let outcome = engine.command(&id, "/roll", None).await.unwrap();
    assert!(outcome.ok, "{:?}", outcome.message);
    for bad in ["/roll one two three four five six", "roll", "/nothing", "/roll \"open"] {
        assert!(engine.command(&id, bad, None).await.is_err(), "{bad}");
    }
    // A command is not a turn.
    assert_eq!(engine.session(&id).unwrap().completed_player_turns, 1);
}
