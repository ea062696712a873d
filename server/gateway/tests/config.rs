//! What `llm.toml` may say, and how it is told what is wrong with it.
#![cfg(feature = "http")]

use covel_gateway::config::{ConfigError, Key, LlmConfig, Modality, Surroundings, Tag, key_variable};
use covel_gateway::limits::{MAX_CONFIG_BYTES, MAX_SLOTS};

fn variable(name: &str) -> Option<String> {
    match name {
        "DEEPSEEK_API_KEY" => Some("sk-deepseek-0123456789".into()),
        "OPENAI_API_KEY" => Some("  ".into()),
        "GROQ_API_KEY" => Some("two words".into()),
        "PROXY_HOST" => Some("proxy.example".into()),
        "NESTED" => Some("${PROXY_HOST}".into()),
        _ => None,
    }
}

fn parse(text: impl AsRef<[u8]>) -> Result<LlmConfig, ConfigError> {
    LlmConfig::parse(text.as_ref(), &Surroundings { variable: &variable, loopback_allowed: true })
}

const START: &str = "[covel.story]\nprovider = \"deepseek\"\nmodel = \"m\"\n";

#[test]
fn the_example_of_the_readme_is_right() {
    let readme = include_str!("../README.md");
    let example = readme.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let config = parse(example).expect("a good example");
    let slots: Vec<_> = config.slots().iter().map(|slot| (slot.name(), slot.endpoint.origin())).collect();
    assert_eq!(
        slots,
        [
            ("story", "https://api.deepseek.com"),
            ("plugin", "https://api.openai.com"),
            ("spare", "http://localhost:11434"),
            ("house", "https://proxy.example"),
        ]
    );
    let problems: Vec<_> = config.problems().iter().map(|problem| (problem.code(), problem.line())).collect();
    assert_eq!(problems, [("llm-config-missing-key", Some(6)), ("llm-config-missing-key", Some(19))]);
    assert_eq!(config.slots()[1].token_limits(None).max_output_tokens, 32_000);
    assert!(matches!(config.slots()[2].key, Key::None));
}

#[test]
fn every_mistake_is_named_with_its_line() {
    let long = format!("{START}user = \"{}\"", "x".repeat(MAX_CONFIG_BYTES));
    let many: String = (0..=MAX_SLOTS).map(|n| format!("[covel.s{n}]\nprovider=\"ollama\"\nmodel=\"m\"\n")).collect();
    let with = |line: &str| format!("{START}{line}\n");
    let cases: Vec<(String, &str, Option<u32>)> = vec![
        (String::new(), "llm-config-no-slots", None),
        ("# nothing\n".into(), "llm-config-no-slots", None),
        (long, "llm-config-too-large", None),
        (many, "llm-config-too-many-slots", Some(3 * MAX_SLOTS as u32 + 1)),
        ("[covel.story]\nprovider = \n".into(), "llm-config-syntax", Some(2)),
        ("[covel.story]\n[covel.story]\n".into(), "llm-config-syntax", Some(2)),
        ("\n[providers.x]\na = 1\n".into(), "llm-config-unknown-table", Some(2)),
        ("\ncovel = 3\n".into(), "llm-config-unknown-table", Some(2)),
        ("[covel]\nstory = 3\n".into(), "llm-config-unknown-table", Some(2)),
        ("[covel.\"a b\"]\n".into(), "llm-config-bad-slot-name", Some(1)),
        ("[covel.story]\nmodel = \"m\"\n".into(), "llm-config-missing-field", Some(1)),
        ("[covel.story]\nprovider = \"ollama\"\n".into(), "llm-config-missing-field", Some(1)),
        ("[covel.story]\nprovider = \"\"\nmodel = \"m\"\n".into(), "llm-config-bad-value", Some(2)),
        ("[covel.story]\nprovider = \"a/b\"\nmodel = \"m\"\n".into(), "llm-config-bad-value", Some(2)),
        ("[covel.story]\nprovider = \"who\"\nmodel = \"m\"\n".into(), "llm-config-unknown-provider", Some(2)),
        (with("temperature = 1"), "llm-config-unknown-field", Some(4)),
        (with("base_url = \"https://x\""), "llm-config-unknown-field", Some(4)),
        (with("apiKey = \"sk-very-secret-value\""), "llm-config-secret-in-file", Some(4)),
        (with("auth_token = \"sk-very-secret-value\""), "llm-config-secret-in-file", Some(4)),
        (with("pricing = { inputPerToken = 1 }"), "llm-config-unknown-field", Some(4)),
        (with("pricing = { perImage = -1 }"), "llm-config-bad-value", Some(4)),
        (with("pricing = { perImage = nan }"), "llm-config-bad-value", Some(4)),
        (with("model2 = 1\nprovider2 = 2"), "llm-config-unknown-field", Some(4)),
        (with("contextWindow = 0"), "llm-config-bad-value", Some(4)),
        (with("contextWindow = \"8k\""), "llm-config-bad-value", Some(4)),
        (with("contextWindow = 99999999999"), "llm-config-bad-value", Some(4)),
        (with("contextWindow = 100\nmaxOutputTokens = 100"), "llm-config-bad-value", Some(5)),
        (with("tag = \"texts\""), "llm-config-bad-value", Some(4)),
        (with("features = [\"flying\"]"), "llm-config-bad-value", Some(4)),
        (with("features = \"streaming\""), "llm-config-bad-value", Some(4)),
        (with("reasoningEffort = \"extreme\""), "llm-config-bad-value", Some(4)),
        (with("providerRequestMetadata = 3"), "llm-config-bad-value", Some(4)),
        (with("providerRequestMetadata = { at = 2024-01-01 }"), "llm-config-bad-value", Some(4)),
        (with("providerOptions.deepseek.seed = \"x\""), "llm-config-bad-value", Some(4)),
        (with("providerOptions.deepseek = 4"), "llm-config-bad-value", Some(4)),
        (with("protocol = \"smtp\""), "llm-config-unknown-protocol", Some(4)),
        (with("fallback = \"none\""), "llm-config-unknown-fallback", Some(1)),
        (
            with("fallback = \"pic\"\n[covel.pic]\nprovider = \"ollama\"\nmodel = \"m\"\ntag = \"image\""),
            "llm-config-fallback-tag",
            Some(1),
        ),
        (with("baseUrl = \"http://api.example.com\""), "llm-config-insecure-url", Some(4)),
        (with("baseUrl = \"https://u:sk-very-secret-value@x.org\""), "llm-config-bad-url", Some(4)),
        (with("baseUrl = \"https://x.org/?key=sk-very-secret-value\""), "llm-config-bad-url", Some(4)),
        (with("baseUrl = \"${NOPE}\""), "llm-config-missing-variable", Some(4)),
        (with("baseUrl = \"${PROXY_HOST\""), "llm-config-bad-interpolation", Some(4)),
        (with("baseUrl = \"${}\""), "llm-config-bad-interpolation", Some(4)),
        (with("baseUrl = \"${a b}\""), "llm-config-bad-interpolation", Some(4)),
        (
            with("providerRequestMetadata = { a = [{ b = \"${DEEPSEEK_API_KEY}\" }] }"),
            "llm-config-secret-interpolation",
            Some(4),
        ),
        ("[covel.story]\nprovider = \"groq\"\nmodel = \"m\"\n".into(), "llm-config-bad-key", Some(2)),
        (with(&format!("user = {}1{}", "[".repeat(5000), "]".repeat(5000))), "llm-config-syntax", Some(4)),
    ];
    for (text, code, line) in cases {
        let error = parse(&text).expect_err(&text);
        let shown: String = text.chars().take(200).collect();
        assert_eq!((error.code(), error.line()), (code, line), "{error}\n{shown}");
        let message = format!("{error} {error:?}");
        assert!(!message.contains("very-secret"), "{message}");
        if let Some(line) = line {
            assert!(message.contains(&format!("line {line}")), "{message}");
        }
        if line.is_some()
            && text.starts_with(START)
            && !["llm-config-syntax", "llm-config-unknown-table"].contains(&code)
        {
            assert!(message.contains("story"), "the slot is named: {message}");
        }
    }
    let bytes = [START.as_bytes(), b"x = \"\xff\"\n"].concat();
    let error = parse(bytes).expect_err("not UTF-8");
    assert_eq!((error.code(), error.line()), ("llm-config-not-utf8", Some(4)));
}

#[test]
fn syntax_errors_do_not_quote_the_line() {
    let error = parse("[covel.story]\napiKey = \"sk-very-secret-value\n").expect_err("unclosed");
    assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
}

#[test]
fn slots_keep_file_order_and_stand_in_for_each_other() {
    let config = parse(
        "[covel.zeta]\nprovider=\"ollama\"\nmodel=\"m\"\n[covel.alpha]\nprovider=\"ollama\"\nmodel=\"m\"\n\
         [covel.image]\nprovider=\"ollama\"\nmodel=\"m\"\noutput=[\"image\"]\n\
         [covel.embed]\nprovider=\"ollama\"\nmodel=\"m\"\noutput=[\"embedding\"]\n\
         [covel.voice]\nprovider=\"ollama\"\nmodel=\"m\"\noutput=[\"audio\"]\n\
         [covel.both]\nprovider=\"ollama\"\nmodel=\"m\"\noutput=[\"image\",\"text\"]\n",
    )
    .expect("good");
    let tags: Vec<_> = config.slots().iter().map(|slot| slot.tag).collect();
    assert_eq!(tags, [Tag::Text, Tag::Text, Tag::Image, Tag::Embedding, Tag::Speech, Tag::Text]);
    assert_eq!(config.slots()[2].output, Some(vec![Modality::Image]));
    let name = |name: &str, tag| config.resolve(name, tag).map(|slot| slot.name().to_owned());
    assert_eq!(name("alpha", Tag::Text), Ok("alpha".into()));
    assert_eq!(name("fast", Tag::Text), Ok("zeta".into()));
    assert_eq!(name("", Tag::Text), Ok("zeta".into()));
    assert_eq!(name("fast", Tag::Speech), Ok("voice".into()));
    assert_eq!(name("image", Tag::Text).expect_err("crosses tags").code(), "llm-config-wrong-tag");
    assert_eq!(name("music", Tag::Music).expect_err("none").code(), "llm-config-no-slot");
}

#[test]
fn fallback_circles_end() {
    let config = parse(
        "[covel.a]\nprovider=\"ollama\"\nmodel=\"m\"\nfallback=\"b\"\n[covel.b]\nprovider=\"ollama\"\nmodel=\"m\"\nfallback=\"c\"\n\
         [covel.c]\nprovider=\"ollama\"\nmodel=\"m\"\nfallback=\"a\"\n",
    )
    .expect("good");
    let chain: Vec<_> = config.chain(&config.slots()[1]).iter().map(|slot| slot.name().to_owned()).collect();
    assert_eq!(chain, ["b", "c", "a"]);
}

#[test]
fn variables_are_replaced_once_and_everywhere() {
    let config =
        parse(format!("{START}providerRequestMetadata = {{ a = [\"<${{NESTED}}>\"], b = {{ c = \"$x {{}}\" }} }}\n"))
            .expect("good");
    let metadata = serde_json::to_string(&config.slots()[0].request_metadata).expect("JSON");
    assert_eq!(metadata, r#"{"a":["<${PROXY_HOST}>"],"b":{"c":"$x {}"}}"#);
}

#[test]
fn names_from_data_are_ordinary() {
    let config = parse("[covel.__proto__]\nprovider=\"constructor\"\nmodel=\"__proto__\"\nbaseUrl=\"https://x.org\"\n")
        .expect("good");
    assert_eq!(config.slots()[0].name(), "__proto__");
    assert_eq!(key_variable("my-proxy.eu"), "MY_PROXY_EU_API_KEY");
}

#[test]
fn this_machine_may_be_forbidden() {
    let hosted = Surroundings { variable: &variable, loopback_allowed: false };
    for url in ["http://localhost:1/v1", "https://127.0.0.1/v1", "http://[::1]/v1"] {
        let text = format!("{START}baseUrl = \"{url}\"\n");
        let error = LlmConfig::parse(text.as_bytes(), &hosted).expect_err(url);
        assert_eq!((error.code(), error.line()), ("llm-config-loopback-forbidden", Some(4)));
    }
}

#[test]
fn without_a_file_there_is_a_story_slot() {
    let none = Surroundings { variable: &|_| None, loopback_allowed: false };
    let config = LlmConfig::built_in(&none).expect("good");
    let problem = &config.problems()[0];
    assert_eq!(problem.code(), "llm-config-missing-key");
    assert_eq!(
        problem.to_string(),
        "slot `story` (built in): no key for provider `deepseek`; set the environment variable DEEPSEEK_API_KEY"
    );
}

#[test]
fn protocols_not_spoken_are_a_problem_of_their_slot_only() {
    let config = parse("[covel.a]\nprovider=\"anthropic\"\nmodel=\"m\"\n[covel.b]\nprovider=\"ollama\"\nmodel=\"m\"\nprotocol=\"plug/wire\"\n").expect("good");
    let codes: Vec<_> = config.problems().iter().map(|problem| (problem.code(), problem.line())).collect();
    assert_eq!(codes, [("llm-config-unsupported-protocol", Some(1)), ("llm-config-unsupported-protocol", Some(4))]);
}

#[test]
fn files_are_read_within_the_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("llm.toml");
    let surroundings = Surroundings { variable: &variable, loopback_allowed: true };
    assert_eq!(LlmConfig::load(&path, &surroundings).expect_err("missing").code(), "llm-config-unreadable");
    std::fs::write(&path, START).expect("written");
    assert_eq!(LlmConfig::load(&path, &surroundings).expect("good").slots().len(), 1);
    std::fs::write(&path, vec![b'#'; MAX_CONFIG_BYTES + 1]).expect("written");
    assert_eq!(LlmConfig::load(&path, &surroundings).expect_err("large").code(), "llm-config-too-large");
}

#[test]
fn configurations_do_not_show_their_keys() {
    let config = parse(START).expect("good");
    assert!(matches!(&config.slots()[0].key, Key::Set(_)));
    assert!(!format!("{config:?}").contains("deepseek-0123"), "{config:?}");
}
