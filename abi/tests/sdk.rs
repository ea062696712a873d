//! The SDK, as plugin code gets it.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use support::{handler, host, load, request, run};

async fn evaluate(expression: &str) -> Value {
    let host = host();
    let code = format!(
        "import * as sdk from '@covel/plugin-handlers-utils'; import * as points from '@covel/plugin-handlers-utils/extension-points'; \
         import {{ materializeDimensions }} from '@covel/plugin-handlers-utils/dimensions'; import {{ createPromptLoader }} from '@covel/plugin-handlers-utils/prompts'; \
         export default async (ctx) => {expression};"
    );
    let files = [
        ("lib/h.js", code.as_str()),
        ("prompts/story.md", "Tell."),
        ("prompts/story.zh.md", "讲。"),
        ("prompts/only.md", "English."),
    ];
    let generation = load(&host, "p", &files).await;
    run(&host, request(&generation, handler("lib/h.js"))).await.unwrap_or_else(|error| panic!("{expression}: {error}"))
}

/// Covers: SDK-1, SDK-2, SDK-3, SEA-2, SEA-4
#[tokio::test]
async fn helpers_do_what_the_reference_says() {
    let cases = [
        ("sdk.getToolContent(sdk.withPendingProposals({a: 1}, [1]))", json!({"a": 1})),
        (
            "sdk.withEmittedEvents(sdk.withPendingProposals('x', [1]), [2])",
            json!({"kind": "covel.tool-result", "content": "x", "pendingProposals": [1], "emittedEvents": [2]}),
        ),
        ("sdk.getEmittedEvents('plain') === undefined", json!(true)),
        (
            "[sdk.translate({messages: {translations: {'Hi {n}': '你好 {n} {x}'}}}, 'Hi {n}', {n: 3}), sdk.translate({}, '{toString}', {})]",
            json!(["你好 3 {x}", "{toString}"]),
        ),
        (
            "[sdk.labelText({messages: {labels: {Day: {zh: '天'}}}}, 'Day'), sdk.labelText({}, 'Day')]",
            json!([{"zh": "天", "en": "Day"}, "Day"]),
        ),
        (
            "['zh-CN', 'zh-TW', 'fr', undefined].map((l) => sdk.resolveI18nText({en: 'a', zh: 'b', 'zh-hant': 'c'}, l))",
            json!(["b", "c", "a", "a"]),
        ),
        ("sdk.resolveI18nDeep({x: [{en: 'a', zh: 'b'}], y: {en: 1}}, 'zh')", json!({"x": ["b"], "y": {"en": 1}})),
        (
            "[sdk.instructionLocaleFor('zh-TW'), sdk.instructionLocaleFor('ja'), sdk.pickLocaleText('zh-TW', 1, 2)]",
            json!(["zh", "en", 2]),
        ),
        ("sdk.splitList(' a，b,,c\\nd ')", json!(["a", "b", "c", "d"])),
        ("sdk.compactRecord({a: undefined, b: [], c: 0}, {dropEmptyArrays: true})", json!({"c": 0})),
        (
            "[sdk.normalizeOptionalInteger('7'), sdk.normalizeOptionalInteger('7.5') ?? null, sdk.normalizeOptionalNumber(' ') ?? null]",
            json!([7, null, null]),
        ),
        ("[sdk.estimateTokens('abcdefgh'), sdk.estimateTokens('你好ab'), sdk.estimateTokens('')]", json!([2, 3, 0])),
        ("sdk.FRAMEWORK_TOOL_NAMES.length", json!(21)),
        (
            "sdk.modelFacingJson({sessionId: 's', id: '123e4567-e89b-12d3-a456-426614174000', name: 'x', createdAt: '2024-01-01T00:00:00Z', at: 1, list: [{playerId: 'p1'}]})",
            json!({"name": "x", "at": 1, "list": [{"playerId": "p1"}]}),
        ),
        (
            "[sdk.wordId('q', 'Find the Key', ['q-find-the-key']), sdk.wordId('q', '钥匙') === sdk.wordId('q', '钥匙')]",
            json!(["q-find-the-key-2", true]),
        ),
        ("sdk.rankTexts('dragons', ['a cat', 'the dragon of the hill', 'dragon']).map((r) => r.index)", json!([2, 1])),
        ("sdk.searchTerms('喷火龙 cities')", json!(["喷火", "火龙", "city"])),
        ("sdk.resolveCharacter([{id: '1', name: 'The Baron', aliases: ['Otto']}], 'otto').character.id", json!("1")),
        ("sdk.resolveCharacter([{id: '1', name: 'Margaret'}], 'Margret').closest.map((c) => c.id)", json!(["1"])),
        (
            "[...sdk.mentionedCharacterIds('In the Great Hall, ann met Dunn; 林小安 nodded.', [{id: 'hall', name: 'Hall'}, {id: 'great', name: 'Great Hall'}, {id: 'ann', name: 'Ann'}, {id: 'inn', name: 'unn'}, {id: 'an', name: '小安'}, {id: 'lin', name: 'L', aliases: ['林']}])]",
            json!(["great", "ann", "lin", "an"]),
        ),
        (
            "[...sdk.mentionedCharacterIds('Anna对安娜说a.b', [{id: '1', name: 'Anna'}, {id: '2', name: 'a.b'}, {id: '3', name: 'axb'}, {id: '4', name: ''}])]",
            json!(["1", "2"]),
        ),
        ("sdk.mentionedCharacterIds('x', []).size", json!(0)),
        ("sdk.mergeCharacterAliases('Ann', ['ann', 'A', 'a'], ['B'])", json!(["A", "B"])),
        (
            "sdk.actingCharacterOf([{}, {characterId: 'b'}], [{id: 'a'}, {id: 'b'}], [{currentCharacterId: 'a'}]).id",
            json!("b"),
        ),
        (
            "sdk.actingCharacterOf([], [{id: 'a'}, {id: 'b'}], [{currentCharacterId: 'b'}, {primary: true, currentCharacterId: 'a'}]).id",
            json!("a"),
        ),
        ("sdk.actingCharacterOf([], [], []) === undefined", json!(true)),
        ("sdk.seatCharacterIds({currentCharacterId: 'b', characterIds: ['a', 'b']})", json!(["b", "a"])),
        (
            "sdk.overlayPluginDataValue([{type: 'plugin.data.delete', source: {pluginId: 'p'}, payload: {namespace: 'n', key: 'k'}}], 'p', 'n', 'k', 1).deleted",
            json!(true),
        ),
        ("points.EXTENSION_POINTS['history.compact@2'].timeoutMs", json!(60000)),
        (
            "materializeDimensions({tideLevel: {name: 'Tide', schema: {type: 'integer'}, initialValue: 3, updateRule: {en: 'Falls.'}}}).tideLevel.value",
            json!(3),
        ),
        (
            "materializeDimensions({mood: {name: 'Mood', schema: {type: 'object', properties: {joy: {type: 'integer', minimum: 2}}, required: ['joy']}}})",
            json!({"mood": {"name": "Mood", "schema": {"type": "object", "properties": {"joy": {"type": "integer", "minimum": 2}}, "required": ["joy"]}, "value": {"joy": 2}, "version": 1}}),
        ),
        (
            "(() => { const load = createPromptLoader(new URL('../prompts/', import.meta.url)); return [load('story', 'en'), load('story', 'zh-CN'), load('only', 'zh')]; })()",
            json!(["Tell.", "讲。", "English."]),
        ),
        (
            "(() => { try { createPromptLoader('/')('../x', 'en') } catch (e) { return e.message } })()",
            json!("../x is not the name of a prompt"),
        ),
        ("sdk.readManualEntity({questJson: '{\"a\":1}'}, 'quest')", json!({"a": 1})),
    ];
    for (expression, expected) in cases {
        assert_eq!(evaluate(expression).await, expected, "{expression}");
    }
}

#[tokio::test]
async fn json_a_model_wrote_almost_right_is_read() {
    let cases = [
        (r#"{"a":1}}]"#, json!({"a": 1})),
        (r#"{"a":"he said "hi" twice","b":2}"#, json!({"a": "he said \"hi\" twice", "b": 2})),
        (r#"[{"a":1,{"a":2}]"#, json!([{"a": 1}, {"a": 2}])),
        (r#"{"a":[1,2}}"#, json!({"a": [1, 2]})),
        (r#"{{"a":1}"#, json!({"a": 1})),
    ];
    for (text, expected) in cases {
        let read = evaluate(&format!("sdk.parseJsonText({})", Value::from(text))).await;
        assert_eq!(read["value"], expected, "{text}: {read}");
    }
    assert_eq!(
        evaluate(r#"[sdk.parseJsonText('{"a":[1').ok, sdk.parseJsonText('{"a":[1', {field: true}).value]"#).await,
        json!([false, {"a": [1]}])
    );
}
