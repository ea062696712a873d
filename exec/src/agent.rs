//! An agent runtime: a model in a tool loop.
//!
//! Writes and events leave an agent only through tools. A failed tool call leaves nothing. A story agent's prose is
//! streamed as it comes; a stream that breaks after text showed is not tried again.

use std::{collections::HashMap, sync::Arc};

use covel_abi::JsHost;
use covel_graph::{
    Json,
    fragment::{AgentDecl, CompletionRequire, RuntimeDecl, Visibility},
};
use covel_model::{
    FinishReason, Message, ModelError, ModelErrorKind, ModelEvent, ModelRequest, Role, SharedGateway, StoryContext,
    ToolCall, ToolChoice,
};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    active::check,
    call_host::RuntimeCall,
    event::Emitter,
    given::AgentResume,
    limits::{MAX_REPLY_BYTES, MAX_TOOL_CALLS_PER_REPLY, MAX_TOOL_RESULT_CHARS},
    prompt::{self, PromptParts},
    results::{EmittedEvent, RuntimeResult, ToolCallSummary, project_output},
    suspend::{AgentState, SuspendRequest, cancelled_call, kept_events},
    tools::{ToolFailure, Toolbox, model_text},
};

/// What one agent run needs.
pub struct AgentRun {
    /// Its host.
    pub call: Arc<RuntimeCall>,
    /// Models.
    pub gateway: SharedGateway,
    /// Isolates, for its tools.
    pub js: JsHost,
    /// Bound inputs.
    pub inputs: Vec<(String, Json)>,
    /// What triggered it.
    pub trigger: Option<(String, Json)>,
    /// Prose of earlier stages of this execution.
    pub prose: Vec<String>,
    /// Where deltas go.
    pub emitter: Emitter,
    /// Cancelled with the turn.
    pub cancel: CancellationToken,
    /// It goes on where it was suspended.
    pub resume: Option<AgentResume>,
}

/// One model reply.
struct Reply {
    text: String,
    calls: Vec<ToolCall>,
    finish: FinishReason,
}

/// Runs the agent to its end.
pub async fn run(run: AgentRun) -> RuntimeResult {
    let shared = Arc::clone(run.call.shared());
    let decl = shared.plan.decl(run.call.runtime()).clone();
    let Some(agent) = decl.agent.clone() else {
        return RuntimeResult::failed("internal", "an agent runtime without an agent part");
    };
    let limit = std::time::Duration::from_millis(agent.timeout_ms.max(1));
    let cancel = run.cancel.child_token();
    let work = Loop::new(run, &decl, &agent, cancel.clone());
    tokio::select! {
        biased;
        // A gateway that does not listen must not hold the turn. Invariant 6
        () = cancel.cancelled() => RuntimeResult::failed("cancelled", "cancelled"),
        ended = tokio::time::timeout(limit, work.run()) => ended.unwrap_or_else(|_| {
            cancel.cancel();
            RuntimeResult::failed("agent-timeout", format!("took longer than {} ms", agent.timeout_ms))
        }),
    }
}

struct Loop<'a> {
    run: AgentRun,
    decl: &'a RuntimeDecl,
    agent: &'a AgentDecl,
    cancel: CancellationToken,
    toolbox: Toolbox,
    topics: Vec<(String, String, String)>,
    story: bool,
    prose: String,
    events: Vec<EmittedEvent>,
    business_calls: usize,
    unresolved_failure: Option<String>,
    repeated: HashMap<(String, String), u32>,
    finished: bool,
    completing_content: Option<Value>,
    corrected: bool,
    tool_calls: Vec<ToolCallSummary>,
    /// The call that suspended it, and answers to those after it.
    suspended: Option<(String, SuspendRequest, Vec<Message>)>,
}

impl<'a> Loop<'a> {
    fn new(run: AgentRun, decl: &'a RuntimeDecl, agent: &'a AgentDecl, cancel: CancellationToken) -> Self {
        let shared = run.call.shared();
        let can_emit = agent.builtin_tools.iter().any(|tool| tool == "emit-event");
        let topics = if agent.advertise_events || can_emit {
            shared
                .plan
                .advertised_topics(shared.plan.plugin_id(run.call.runtime()))
                .into_iter()
                .map(|(topic, event)| {
                    let description = event.description.first().map(|(_, text)| text.clone()).unwrap_or_default();
                    (topic.to_owned(), description, event.schema.clone())
                })
                .collect()
        } else {
            Vec::new()
        };
        let toolbox = Toolbox::new(
            Arc::clone(&run.call),
            run.js.clone(),
            agent.plugin_tools.clone(),
            agent.builtin_tools.clone(),
        );
        Self {
            story: decl.visibility == Visibility::Story,
            run,
            decl,
            agent,
            cancel,
            toolbox,
            topics,
            prose: String::new(),
            events: Vec::new(),
            business_calls: 0,
            unresolved_failure: None,
            repeated: HashMap::new(),
            finished: false,
            completing_content: None,
            corrected: false,
            tool_calls: Vec::new(),
            suspended: None,
        }
    }

    async fn run(mut self) -> RuntimeResult {
        let shared = Arc::clone(self.run.call.shared());
        let (system, mut messages, used) = match self.run.resume.take() {
            Some(resume) => self.go_on(resume),
            None => {
                let parts = PromptParts {
                    call: &self.run.call,
                    decl: self.decl,
                    inputs: &self.run.inputs,
                    trigger: self.run.trigger.as_ref(),
                    prose: &self.run.prose,
                    topics: if self.agent.advertise_events { &self.topics } else { &[] },
                };
                (prompt::system_prompt(&parts), prompt::messages(&parts), 0)
            }
        };
        let output_schema = shared.plan.package(self.run.call.runtime()).output_schemas
            [shared.plan.local(self.run.call.runtime())]
        .clone();
        let schema_value = if self.story {
            None
        } else {
            self.decl.output.schema.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok())
        };
        let specs = self.toolbox.specs(&self.topics, !self.story && schema_value.is_none());
        let mut choice = match self.agent.tool_choice.as_deref() {
            Some("required") => ToolChoice::Required,
            Some(name) => ToolChoice::Named(name.trim_start_matches("name:").to_owned()),
            None => ToolChoice::Auto,
        };
        for step in used..=self.agent.max_steps.max(used) {
            let last = step >= self.agent.max_steps;
            self.steer(&mut messages);
            let request = ModelRequest {
                slot: self.agent.model.clone().unwrap_or_else(|| if self.story { "story" } else { "plugin" }.into()),
                system: system.clone(),
                messages: messages.clone(),
                // With the steps used up only words are left.
                tools: if last { Vec::new() } else { specs.clone() },
                tool_choice: if last { ToolChoice::Auto } else { choice.clone() },
                reasoning_disabled: self.agent.reasoning_disabled,
                response_schema: schema_value.clone(),
                max_output_tokens: None,
                first_token_timeout_ms: self.agent.first_token_timeout_ms,
                idle_timeout_ms: self.agent.idle_timeout_ms,
                story: self.situation(),
            };
            let reply = match self.ask(request).await {
                Ok(reply) => reply,
                Err(error) => return RuntimeResult::failed(error.code(), error.message),
            };
            if reply.calls.is_empty() && !last && self.story && self.steered(&reply, &mut messages) {
                continue;
            }
            if reply.calls.is_empty() {
                match self.ending(&reply, &mut messages) {
                    Some(result) => return self.settle(result, &reply, output_schema.as_deref()),
                    None => {
                        choice = ToolChoice::Required;
                        continue;
                    }
                }
            }
            if last {
                break;
            }
            choice = if matches!(choice, ToolChoice::Named(_)) { choice } else { ToolChoice::Auto };
            if let Some(failed) = self.call_tools(&reply, &mut messages).await {
                return failed;
            }
            if self.suspended.is_some() {
                return self.stop(system, messages, step + 1);
            }
            if self.finished {
                if self.story && self.prose.trim().is_empty() {
                    self.finished = false;
                    messages
                        .push(Message::new(Role::User, "Write the story prose now; tools are not needed any more."));
                    continue;
                }
                match self.ending(&reply, &mut messages) {
                    Some(result) => return self.settle(result, &reply, output_schema.as_deref()),
                    None => {
                        self.finished = false;
                        choice = ToolChoice::Required;
                    }
                }
            }
        }
        if self.story && !self.prose.trim().is_empty() {
            return self.story_result();
        }
        RuntimeResult::failed(
            "agent-steps-exhausted",
            format!("did not finish within {} tool-call steps", self.agent.max_steps),
        )
    }

    /// Takes up a suspended conversation: prompt, messages, steps used.
    fn go_on(&mut self, resume: AgentResume) -> (String, Vec<Message>, u32) {
        let AgentResume { state, data } = resume;
        let mut messages = state.messages;
        messages.push(Message::tool_result(state.call_id, data.text()));
        messages.extend(state.after);
        self.prose = state.prose;
        self.business_calls = state.business_calls;
        self.corrected = state.corrected;
        let continuation = self.run.call.shared().given.resume_of(self.run.call.runtime());
        self.events = continuation.map(|resume| kept_events(&resume.continuation.events)).unwrap_or_default();
        (state.system, messages, state.steps)
    }

    /// Ends here, to go on when an answer comes.
    fn stop(self, system: String, messages: Vec<Message>, steps: u32) -> RuntimeResult {
        let Some((call_id, request, after)) = self.suspended else { return RuntimeResult::default() };
        let state = AgentState {
            system,
            messages,
            call_id,
            after,
            steps,
            prose: self.prose,
            business_calls: self.business_calls,
            corrected: self.corrected,
        };
        let mut result = RuntimeResult::suspended(request, Some(state));
        result.events = self.events;
        result.tool_calls = self.tool_calls;
        result
    }

    /// Tells the story what the player added since it was last asked.
    fn steer(&self, messages: &mut Vec<Message>) -> bool {
        if !self.story {
            return false;
        }
        let fresh = self.run.call.shared().given.steering.fresh();
        let any = !fresh.is_empty();
        messages.extend(fresh.into_iter().map(|text| Message::new(Role::User, text)));
        any
    }

    /// A story about to end goes on when the player has added something meanwhile.
    fn steered(&self, reply: &Reply, messages: &mut Vec<Message>) -> bool {
        let said = messages.len();
        if !self.steer(messages) {
            return false;
        }
        if !reply.text.is_empty() {
            messages.insert(said, Message::new(Role::Assistant, reply.text.clone()));
        }
        true
    }

    /// Reads a call of `suspend`.
    fn suspend(&self, arguments: &str) -> Result<SuspendRequest, ToolFailure> {
        let shared = self.run.call.shared();
        let id = shared.plan.runtime_id(self.run.call.runtime());
        let resumed = shared.given.resume_of(self.run.call.runtime()).is_some();
        if shared.session.suspended.contains_key(id) && !resumed {
            let message = "this runtime is suspended already; that one must be resumed or given up first".to_owned();
            return Err(ToolFailure { code: "EXECUTION_ERROR", message, details: None });
        }
        let value = serde_json::from_str::<Value>(arguments).unwrap_or_default();
        let object = value.as_object().ok_or_else(|| invalid_args("the arguments are not an object"))?;
        SuspendRequest::read(object).map_err(|message| invalid_args(&message))
    }

    fn situation(&self) -> StoryContext {
        let shared = self.run.call.shared();
        StoryContext {
            world_id: shared.session.world_id.clone(),
            session_id: shared.session.id.clone(),
            logical_turn: shared.logical_turn,
            runtime_id: shared.plan.runtime_id(self.run.call.runtime()).to_owned(),
            player_message: shared.message.clone(),
            locale: shared.session.locale.clone(),
            seed: shared.session.seed.clone(),
            story: self.story,
        }
    }

    /// One reply, with the retries the manifest allows.
    async fn ask(&mut self, request: ModelRequest) -> Result<Reply, ModelError> {
        let mut request = request;
        let mut left = self.agent.max_retries;
        let mut truncated = false;
        loop {
            let shown = self.prose.len();
            let result = self.stream(request.clone()).await;
            let text_showed = self.prose.len() > shown;
            match result {
                Ok(reply)
                    if reply.finish == FinishReason::Length
                        && !(self.story && reply.calls.is_empty() && text_showed) =>
                {
                    if truncated {
                        return Err(ModelError::new(
                            ModelErrorKind::BadRequest,
                            "the reply was cut off twice; raise the model's output limit",
                        ));
                    }
                    truncated = true;
                    self.take_back(shown);
                    request
                        .messages
                        .push(Message::new(Role::User, "Your reply was cut off. Write only what is needed."));
                }
                Ok(reply) => return Ok(reply),
                Err(error)
                    if error.retriable && left > 0 && !(self.story && text_showed) && !self.cancel.is_cancelled() =>
                {
                    left -= 1;
                    self.take_back(shown);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes prose of a discarded attempt, here and for whoever watches.
    fn take_back(&mut self, length: usize) {
        if self.prose.len() > length {
            self.prose.truncate(length);
            self.run.emitter.delta(self.run.call.runtime(), "", Some(&self.prose));
        }
    }

    async fn stream(&mut self, request: ModelRequest) -> Result<Reply, ModelError> {
        let mut stream = self.run.gateway.stream(request, self.cancel.clone());
        let mut reply = Reply { text: String::new(), calls: Vec::new(), finish: FinishReason::Stop };
        let mut fresh = !self.prose.is_empty();
        while let Some(event) = stream.next().await {
            match event? {
                ModelEvent::Text(text) => {
                    if reply.text.len() + text.len() > MAX_REPLY_BYTES {
                        return Err(too_long("the reply"));
                    }
                    reply.text.push_str(&text);
                    if self.story {
                        // Prose of a later step is a new paragraph.
                        let piece = if std::mem::take(&mut fresh) && !self.prose.ends_with('\n') {
                            format!("\n\n{text}")
                        } else {
                            text
                        };
                        self.prose.push_str(&piece);
                        self.run.emitter.delta(self.run.call.runtime(), &piece, None);
                    }
                }
                ModelEvent::Reasoning(_) => {}
                ModelEvent::ToolCall(call) => {
                    if reply.calls.len() >= MAX_TOOL_CALLS_PER_REPLY {
                        return Err(ModelError::new(
                            ModelErrorKind::BadRequest,
                            format!("the model made more than {MAX_TOOL_CALLS_PER_REPLY} tool calls in one reply"),
                        ));
                    }
                    if call.arguments.len() > MAX_REPLY_BYTES {
                        return Err(too_long("the arguments of a tool call"));
                    }
                    reply.calls.push(call);
                }
                ModelEvent::Done { finish, .. } => {
                    reply.finish = finish;
                    return match finish {
                        FinishReason::ContentFilter => {
                            Err(ModelError::new(ModelErrorKind::Refused, "the model refused"))
                        }
                        FinishReason::Error => {
                            Err(ModelError::new(ModelErrorKind::Server, "the provider reported an error"))
                        }
                        _ => Ok(reply),
                    };
                }
            }
        }
        if self.cancel.is_cancelled() {
            return Err(ModelError::new(ModelErrorKind::Cancelled, "cancelled"));
        }
        Err(ModelError::new(ModelErrorKind::Server, "the reply broke off before its end"))
    }

    /// Runs a reply's tool calls in order.
    async fn call_tools(&mut self, reply: &Reply, messages: &mut Vec<Message>) -> Option<RuntimeResult> {
        messages.push(Message {
            role: Role::Assistant,
            content: reply.text.clone(),
            tool_calls: reply.calls.clone(),
            tool_call_id: None,
        });
        for call in &reply.calls {
            if let Some((_, _, after)) = &mut self.suspended {
                after.push(cancelled_call(call));
                continue;
            }
            if call.name == "suspend" && self.toolbox.offers("suspend") {
                match self.suspend(&call.arguments) {
                    Ok(request) => self.suspended = Some((call.id.clone(), request, Vec::new())),
                    Err(failure) => {
                        messages.push(Message::tool_result(call.id.clone(), failure.to_json().to_string()));
                    }
                }
                continue;
            }
            if self.cancel.is_cancelled() {
                return Some(RuntimeResult::failed("cancelled", "cancelled"));
            }
            let seen = self.repeated.entry((call.name.clone(), call.arguments.clone())).or_default();
            *seen += 1;
            if self.agent.loop_detection > 0 && *seen > self.agent.loop_detection {
                return Some(RuntimeResult::failed(
                    "agent-loop-detected",
                    format!("called {:?} with the same arguments {} times", call.name, *seen),
                ));
            }
            let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
            let outcome = match Json::parse(text) {
                Ok(arguments) if arguments.value().is_object() => {
                    self.toolbox.call(&call.name, arguments, &self.topics, &self.cancel).await
                }
                Ok(_) => Err(invalid_args("the arguments are not an object")),
                Err(error) => Err(invalid_args(&format!("the arguments are not JSON: {error}"))),
            };
            self.tool_calls.push(ToolCallSummary { name: call.name.clone(), ok: outcome.is_ok() });
            let shown = match outcome {
                Ok(reply) => {
                    self.unresolved_failure = None;
                    if self.toolbox.is_own(&call.name) {
                        self.business_calls += 1;
                    }
                    for event in reply.events {
                        // A topic already emitted in this loop counts once.
                        if !self.events.iter().any(|seen| seen.topic == event.topic) {
                            self.events.push(event);
                        }
                    }
                    if reply.done || self.agent.after_tools.contains(&call.name) {
                        self.finished = true;
                        if !reply.done {
                            self.completing_content = Some(reply.content.clone());
                        }
                    }
                    model_text(&reply.content)
                }
                Err(failure) => {
                    self.unresolved_failure = Some(format!("{}: {}", call.name, failure.message));
                    failure.to_json().to_string()
                }
            };
            let shown: String = shown.chars().take(MAX_TOOL_RESULT_CHARS).collect();
            messages.push(Message::tool_result(call.id.clone(), shown));
        }
        None
    }

    /// Is the agent finished? `None`: it gets one correction and goes on.
    fn ending(&mut self, reply: &Reply, messages: &mut Vec<Message>) -> Option<Result<(), RuntimeResult>> {
        if self.story {
            return Some(if self.prose.trim().is_empty() {
                Err(RuntimeResult::failed("story-empty", "the model wrote no story text"))
            } else {
                Ok(())
            });
        }
        let unmet = match self.agent.require {
            CompletionRequire::None => None,
            CompletionRequire::ToolUse if self.business_calls == 0 => Some("Call one of your tools first."),
            CompletionRequire::Explicit if !self.finished => Some("Call a finishing tool or runtime-done to finish."),
            _ => None,
        };
        let Some(hint) = unmet else { return Some(Ok(())) };
        if self.corrected {
            let mut message = format!("the agent ended without what `completion.require` asks for ({hint})");
            if let Some(failure) = &self.unresolved_failure {
                message.push_str(&format!("; its last tool call failed: {failure}"));
            }
            return Some(Err(RuntimeResult::failed("completion-not-met", message)));
        }
        self.corrected = true;
        if reply.calls.is_empty() && !reply.text.is_empty() {
            messages.push(Message::new(Role::Assistant, reply.text.clone()));
        }
        messages.push(Message::new(Role::User, hint));
        None
    }

    fn story_result(self) -> RuntimeResult {
        let text = self.prose.trim().to_owned();
        let value = Json::from_value(json!({"narrativeOutput": text}));
        RuntimeResult {
            output: Some(value.clone()),
            value: Some(value),
            narrative: Some(text),
            events: self.events,
            tool_calls: self.tool_calls,
            ..RuntimeResult::default()
        }
    }

    fn settle(
        self,
        ending: Result<(), RuntimeResult>,
        reply: &Reply,
        schema: Option<&covel_graph::schema::Validator>,
    ) -> RuntimeResult {
        if let Err(failed) = ending {
            return failed;
        }
        if self.story {
            return self.story_result();
        }
        let parsed = match (&self.completing_content, serde_json::from_str::<Value>(reply.text.trim())) {
            (Some(content), _) => Some(content.clone()),
            (None, Ok(value)) => Some(value),
            (None, Err(_)) => None,
        };
        let mut value = match (parsed, schema) {
            (Some(value), Some(validator)) => {
                if let Err(message) = check(validator, &value) {
                    return RuntimeResult::failed(
                        "output-schema-invalid",
                        format!("the answer does not fit: {message}"),
                    );
                }
                value
            }
            (None, Some(_)) => {
                return RuntimeResult::failed("output-schema-invalid", "the answer is not JSON");
            }
            (Some(value), None) => value,
            (None, None) if reply.text.trim().is_empty() => json!({}),
            (None, None) => json!({"text": reply.text.trim()}),
        };
        let completion_done = self.completion_signal(&mut value);
        let value = Json::from_value(value);
        RuntimeResult {
            output: Some(project_output(Some(&value))),
            value: Some(value),
            events: self.events,
            tool_calls: self.tool_calls,
            completion_done,
            ..RuntimeResult::default()
        }
    }

    /// `preGameDone: true` or `completion: "done"` in the answer are signals, not output; effect channels in a
    /// model's own words are dropped.
    fn completion_signal(&self, value: &mut Value) -> bool {
        let Some(object) = value.as_object_mut() else { return self.finished };
        if self.completing_content.is_none() {
            for channel in ["statePatches", "pluginData", "notifications", "assetGenerations", "interactions", "ui"] {
                object.shift_remove(channel);
            }
        }
        let done = object.shift_remove("preGameDone") == Some(Value::Bool(true))
            || object.get("completion").and_then(Value::as_str) == Some("done");
        object.shift_remove("completion");
        done
    }
}

fn too_long(what: &str) -> ModelError {
    ModelError::new(ModelErrorKind::BadRequest, format!("{what} has more than {MAX_REPLY_BYTES} bytes"))
}

fn invalid_args(message: &str) -> ToolFailure {
    ToolFailure { code: "INVALID_ARGS", message: message.to_owned(), details: None }
}
