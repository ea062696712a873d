//! What happens to a turn while it runs: the player adds something, or stops it.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use covel_exec::{Engine, EngineOptions, ExecutionRequest, FixedAmbient, NewSession, TurnDocument};
use covel_graph::package::Package;
use covel_model::{FinishReason, Gateway, ModelEvent, ModelRequest, ModelStream, Role, Usage};
use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use support::{function, package};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// Tells of every request, and answers each once it may.
struct Gate {
    asked: mpsc::UnboundedSender<Vec<(Role, String)>>,
    allowed: Arc<Semaphore>,
    answers: Mutex<Vec<&'static str>>,
}

impl Gateway for Gate {
    fn stream(&self, request: ModelRequest, _: CancellationToken) -> ModelStream {
        let said = request.messages.into_iter().map(|message| (message.role, message.content)).collect();
        self.asked.send(said).unwrap();
        let (allowed, answer) = (Arc::clone(&self.allowed), self.answers.lock().remove(0));
        stream::once(async move {
            allowed.acquire().await.unwrap().forget();
            stream::iter([
                Ok(ModelEvent::Text(answer.to_owned())),
                Ok(ModelEvent::Done { finish: FinishReason::Stop, usage: Usage::default(), model: None }),
            ])
        })
        .flatten()
        .boxed()
    }

    fn name(&self) -> &str {
        "gate"
    }
}

struct Play {
    engine: Engine,
    asked: mpsc::UnboundedReceiver<Vec<(Role, String)>>,
    allowed: Arc<Semaphore>,
    _folder: tempfile::TempDir,
}

fn teller() -> Arc<Package> {
    package(&[(
        "PLUGIN.md",
        "---\nid: teller\nkind: plugin\ndescription: Tells.\nruntime:\n  type: agent\n  schedule: { stage: narrative }\n  io: { visibility: story }\n  agent: { loop: { maxRetries: 0, maxSteps: 3 } }\n---\nTell.\n",
    )])
}

async fn play(answers: &[&'static str], packages: Vec<Arc<Package>>) -> Play {
    let folder = tempfile::tempdir().unwrap();
    let (sender, asked) = mpsc::unbounded_channel();
    let allowed = Arc::new(Semaphore::new(0));
    let gate = Gate { asked: sender, allowed: Arc::clone(&allowed), answers: Mutex::new(answers.to_vec()) };
    let mut options = EngineOptions::new(folder.path(), Arc::new(gate));
    options.ambient = Arc::new(FixedAmbient::default());
    options.durable = false;
    let engine = Engine::open(options).unwrap();
    engine.publish(packages).await;
    engine.create_session(NewSession { id: Some("s".into()), ..NewSession::default() }).await.unwrap();
    Play { engine, asked, allowed, _folder: folder }
}

impl Play {
    fn turn(&self, message: &str) -> tokio::task::JoinHandle<TurnDocument> {
        let (engine, request) = (self.engine.clone(), ExecutionRequest::player("s", message));
        tokio::spawn(async move { engine.execute(request, None).await.unwrap() })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_player_adds_is_told_to_the_story_and_stored_with_the_turn() {
    let mut play = play(&["You walk on.", "You turn around."], vec![teller()]).await;
    assert_eq!(play.engine.steer("s", "Wait!").unwrap_err().code(), "nothing-running");
    let turn = play.turn("I walk.");
    play.asked.recv().await.unwrap();
    assert_eq!(play.engine.execution("s").unwrap().status, "running");
    play.engine.steer("s", "No, back!").unwrap();
    assert_eq!(play.engine.steer("s", "  ").unwrap_err().code(), "invalid-request");
    play.allowed.add_permits(1);
    // The first answer ended the story; because of what was added it is asked once more.
    let second = play.asked.recv().await.unwrap();
    let tail = &second[second.len() - 2..];
    assert_eq!(tail, [(Role::Assistant, "You walk on.".to_owned()), (Role::User, "No, back!".to_owned())]);
    play.allowed.add_permits(1);
    let turn = turn.await.unwrap();
    assert_eq!(
        (turn.narrative.as_str(), &*turn.steers),
        ("You walk on.\n\nYou turn around.", &["No, back!".to_owned()][..])
    );
    let stored: Vec<(String, String)> =
        play.engine.messages("s", 10).unwrap().into_iter().map(|message| (message.role, message.content)).collect();
    let user = |text: &str| ("user".to_owned(), text.to_owned());
    assert_eq!(stored[..2], [user("I walk."), user("No, back!")]);
    assert_eq!(stored.len(), 3);
    assert_eq!(play.engine.steer("s", "Too late").unwrap_err().code(), "nothing-running");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_turn_is_dropped_whole_and_says_who_stopped_it() {
    let before = function(
        "before",
        "{ stage: pre-turn }",
        "",
        "",
        "export default async (ctx) => { await ctx.pluginData.set('n', 'k', 1); return { outcome: 'success' }; };",
    );
    let mut play = play(&["Never told.", "Told."], vec![before, teller()]).await;
    assert!(!play.engine.abort("s"));
    let turn = play.turn("I walk.");
    play.asked.recv().await.unwrap();
    assert!(play.engine.abort("s"));
    let turn = turn.await.unwrap();
    assert_eq!((turn.committed, turn.error.unwrap().code.as_str()), (false, "cancelled"));
    assert_eq!(turn.abort_reason.as_deref(), Some("aborted-by-player"));
    assert!(play.engine.data("s", covel_exec::DataFilter::default()).unwrap().is_empty());
    assert!(play.engine.messages("s", 10).unwrap().is_empty());
    let info = play.engine.execution("s").unwrap();
    assert_eq!((info.status, info.abort_reason), ("failed", Some("aborted-by-player")));
    // What was stopped can be asked again.
    let again = play.turn("I walk.");
    play.asked.recv().await.unwrap();
    play.allowed.add_permits(2);
    assert!(again.await.unwrap().committed);
}
