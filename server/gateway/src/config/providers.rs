//! The providers and protocols known by name.

/// A provider known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Id, as `provider` in `llm.toml`.
    pub id: &'static str,
    /// Base URL.
    pub base_url: &'static str,
    /// Protocol used when a slot names none.
    pub protocol: &'static str,
}

/// The protocol of slots that name none and whose provider has none.
pub const DEFAULT_PROTOCOL: &str = "openai-chat-v1";

/// Built-in text and evaluation protocols, spoken by this program or not.
pub const PROTOCOLS: [&str; 8] = [
    "openai-chat-v1",
    "openai-responses-v1",
    "anthropic-messages-v1",
    "google-generative-ai-v1",
    "typesafe-systemone-v1",
    "openrouter-decisions-v1",
    "vercel-evaluation-v4",
    "openai-decisions-v1",
];

const fn chat(id: &'static str, base_url: &'static str) -> Provider {
    Provider { id, base_url, protocol: DEFAULT_PROTOCOL }
}

/// Built-in providers.
pub const PROVIDERS: [Provider; 22] = [
    chat("openai", "https://api.openai.com/v1"),
    Provider { id: "anthropic", base_url: "https://api.anthropic.com", protocol: "anthropic-messages-v1" },
    Provider {
        id: "google",
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        protocol: "google-generative-ai-v1",
    },
    chat("deepseek", "https://api.deepseek.com"),
    chat("dashscope", "https://dashscope.aliyuncs.com/compatible-mode/v1"),
    chat("xai", "https://api.x.ai/v1"),
    chat("mistral", "https://api.mistral.ai/v1"),
    chat("groq", "https://api.groq.com/openai/v1"),
    chat("together", "https://api.together.xyz/v1"),
    chat("fireworks", "https://api.fireworks.ai/inference/v1"),
    chat("moonshot", "https://api.moonshot.cn/v1"),
    chat("zhipu", "https://open.bigmodel.cn/api/paas/v4"),
    chat("siliconflow", "https://api.siliconflow.cn/v1"),
    chat("volcengine", "https://ark.cn-beijing.volces.com/api/v3"),
    chat("openrouter", "https://openrouter.ai/api/v1"),
    chat("vercel", "https://ai-gateway.vercel.sh/v1"),
    Provider { id: "typesafe", base_url: "https://api.typesafe.ai/v1", protocol: "typesafe-systemone-v1" },
    chat("ollama", "http://localhost:11434/v1"),
    chat("lmstudio", "http://localhost:1234/v1"),
    chat("llamacpp", "http://localhost:8080/v1"),
    chat("vllm", "http://localhost:8000/v1"),
    chat("litellm", "http://localhost:4000/v1"),
];

/// The built-in provider of this id.
pub fn provider(id: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.id == id)
}

/// The environment variable that holds a provider's key: `my-proxy` reads `MY_PROXY_API_KEY`.
pub fn key_variable(provider: &str) -> String {
    let name: String = provider
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() { character.to_ascii_uppercase() } else { '_' })
        .collect();
    format!("{name}_API_KEY")
}
