//! `GET /api/events/stream`: a session's events by name, with ids to continue from.

use std::convert::Infallible;

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ApiError, AppState, actions::sse, extract::QueryParams};
use crate::{
    bus::{Batch, Subscription},
    limits,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StreamQuery {
    session_id: Option<String>,
    last_event_id: Option<String>,
}

pub(super) async fn events(
    State(state): State<AppState>,
    headers: HeaderMap,
    QueryParams(query): QueryParams<StreamQuery>,
) -> Result<Response, ApiError> {
    let Some(session) = query.session_id.filter(|session| !session.is_empty()) else {
        return Err(ApiError::bad_request("invalid_query", "sessionId is missing"));
    };
    state.engine.session(&session)?;
    // The header is what a browser sends by itself when it reconnects, so it is the newer of the two.
    let header = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let last = header.or(query.last_event_id).filter(|id| !id.is_empty());
    let subscription = state.bus.subscribe(&session, last.as_deref()).map_err(|_| {
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_streams", "too many event streams are open")
            .with(json!({ "perSession": limits::MAX_STREAMS_PER_SESSION, "total": limits::MAX_STREAMS }))
    })?;
    let reader = Reader { state, session, subscription, greeted: false };
    let pieces = stream::unfold(reader, |mut reader| async move {
        let piece = reader.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(piece)), reader))
    });
    Ok(sse(Body::from_stream(pieces)))
}

struct Reader {
    state: AppState,
    session: String,
    subscription: Subscription,
    greeted: bool,
}

impl Reader {
    async fn next(&mut self) -> Option<String> {
        if !self.greeted {
            self.greeted = true;
            return Some(self.unnumbered("system.connected", json!({ "cursor": self.subscription.cursor() })));
        }
        let stopped = self.state.streams.clone();
        let batch = tokio::select! {
            biased;
            () = stopped.cancelled() => return None,
            batch = tokio::time::timeout(limits::HEARTBEAT, self.subscription.next()) => batch,
        };
        match batch {
            Err(_) => Some(self.unnumbered("system.heartbeat", json!({}))),
            Ok(None) => None,
            Ok(Some(Batch::Events(events))) => {
                let mut text = String::new();
                for event in events {
                    text.push_str("event: ");
                    text.push_str(event.kind);
                    text.push_str("\nid: ");
                    text.push_str(&event.id);
                    text.push_str("\ndata: ");
                    text.push_str(&event.data);
                    text.push_str("\n\n");
                }
                Some(text)
            }
            Ok(Some(Batch::Reset { reason, epoch, oldest, latest, cursor })) => Some(self.unnumbered(
                "system.reset",
                json!({ "reason": reason, "epoch": epoch, "oldestSeq": oldest, "latestSeq": latest, "cursor": cursor }),
            )),
        }
    }

    /// An event without id: it has no place in the order, so a client must not continue from it.
    fn unnumbered(&self, kind: &str, mut payload: Value) -> String {
        payload["sessionId"] = json!(self.session);
        payload["timestamp"] = json!(self.state.now());
        format!("event: {kind}\ndata: {payload}\n\n")
    }
}
