//! A trace as one HTML file: a Gantt picture and the same as a table. It needs nothing from elsewhere, reads without
//! scripts, and every text from a package is escaped.

use std::fmt::Write as _;

use covel_exec::{
    RuntimeStatus,
    trace::{TraceDocument, TraceRuntime},
};

use super::table::{millis, read, short, status};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Bars narrower than this share of the time line are drawn this wide, in hundredths of a percent.
const MIN_BAR: u64 = 30;
/// A bar that ends before this share, in hundredths of a percent, leaves room for its label behind it.
const ROOM_BEHIND: u64 = 8_800;
/// One that starts after this share leaves room before it.
const ROOM_BEFORE: u64 = 1_200;
/// Lines of the time axis.
const TICKS: u64 = 5;

/// Writes text for element content and quoted attributes.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Right-to-left overrides and other invisible marks must not rearrange the page.
            '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => escaped.push('\u{FFFD}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A label in both languages; the page shows one.
fn label(en: &str, zh: &str) -> String {
    format!("<span class=en lang=en>{en}</span><span class=zh lang=zh>{zh}</span>")
}

fn status_label(of: RuntimeStatus) -> String {
    let zh = match of {
        RuntimeStatus::Success => "成功",
        RuntimeStatus::Skipped => "跳过",
        RuntimeStatus::Failed => "失败",
        RuntimeStatus::Suspended => "等待",
    };
    label(status(of), zh)
}

fn stage_label(row: &TraceRuntime) -> String {
    if let Some(depth) = row.depth {
        return label(&format!("events, depth {depth}"), &format!("事件，深度 {depth}"));
    }
    let zh = match row.stage.as_str() {
        "setup" => "准备",
        "pre-turn" => "回合前",
        "narrative" => "叙事",
        "post-turn" => "回合后",
        "audit" => "审查",
        "manual" => "手动",
        other => return escape(other),
    };
    label(&escape(&row.stage), zh)
}

/// The whole page. Writing to a string does not fail.
pub(super) fn page(trace: &TraceDocument) -> String {
    let title = format!("{} {}", escape(&trace.origin), escape(&trace.turn_id));
    let mut page = format!(
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>{title} · Covel</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
    );
    head(&mut page, trace);
    page.push_str("<main>\n");
    chart(&mut page, trace);
    lists(&mut page, trace);
    table(&mut page, trace);
    let _ = write!(page, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    page
}

fn head(page: &mut String, trace: &TraceDocument) {
    let verdict = if trace.committed { label("committed", "已提交") } else { label("not committed", "未提交") };
    let class = if trace.committed { "good" } else { "bad" };
    let _ = write!(
        page,
        "<header>\n<div class=top><h1>{} <code>{}</code></h1>\
         <button type=button id=language hidden>中文 / English</button></div>\n\
         <p class=verdict><strong class={class}>{verdict}</strong> · {} ms · {} {}</p>\n",
        label("Turn", "回合"),
        escape(&trace.turn_id),
        millis(trace.duration_micros),
        label("logical turn", "逻辑回合"),
        trace.logical_turn,
    );
    if let Some(error) = &trace.error {
        let _ = writeln!(page, "<p class=error><code>{}</code> {}</p>", escape(&error.code), escape(&error.message));
    }
    if !trace.message.is_empty() {
        let _ = writeln!(page, "<blockquote>{}</blockquote>", escape(&trace.message));
    }
    page.push_str("<dl>\n");
    let mut fact = |name: String, value: String| {
        let _ = writeln!(page, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    };
    fact(label("Session", "会话"), escape(&trace.session_id));
    fact(label("Kind", "类型"), escape(&trace.origin));
    fact(label("Started", "开始"), escape(&trace.started_at));
    fact(label("Plan", "计划"), format!("<code>{}</code>", escape(short(&trace.plan))));
    fact(label("Journal entry", "日志条目"), trace.journal_seq.to_string());
    if let Some(world) = &trace.world {
        fact(label("World", "世界"), escape(&world.id));
    }
    let replay = if trace.replayable { label("possible", "可以") } else { label("not possible", "不可以") };
    fact(label("Replay", "重放"), replay);
    page.push_str("</dl>\n</header>\n");
}

fn chart(page: &mut String, trace: &TraceDocument) {
    let last = trace.runtimes.iter().map(|row| row.ended_micros).max().unwrap_or(0);
    let whole = last.max(1);
    let _ = writeln!(
        page,
        "<section aria-labelledby=picture>\n<h2 id=picture>{}</h2>\n<p class=hint>{}</p>\n<div class=legend>",
        label("Time line", "时间线"),
        label(
            "Point at a bar, or move with the arrow keys, for its details; the runtimes it waited for are marked.",
            "将指针移到条上，或用方向键移动，可查看详情；它所等待的运行单元会被标出。"
        ),
    );
    for of in [RuntimeStatus::Success, RuntimeStatus::Failed, RuntimeStatus::Skipped, RuntimeStatus::Suspended] {
        let _ = write!(page, "<span class=\"key {}\">{}</span>", status(of), status_label(of));
    }
    page.push_str("</div>\n<div class=scroll><div class=chart>\n<div class=axis aria-hidden=true><div class=name></div><div class=track>");
    for tick in 0..=TICKS {
        let at = whole * tick / TICKS;
        let _ = write!(page, "<span style=\"left:{}%\">{} ms</span>", tick * 100 / TICKS, millis(at));
    }
    page.push_str("</div></div>\n");
    let mut group: Option<(&str, Option<u32>)> = None;
    let mut layer = None;
    for (at, row) in trace.runtimes.iter().enumerate() {
        let this = (row.stage.as_str(), row.depth);
        if group != Some(this) {
            group = Some(this);
            layer = None;
            let _ = writeln!(page, "<h3 class=stage>{}</h3>", stage_label(row));
        }
        let first_of_layer = layer != Some(row.layer);
        layer = Some(row.layer);
        bar(page, trace, at, row, whole, first_of_layer);
    }
    page.push_str("</div></div>\n<div id=details class=details aria-live=polite></div>\n</section>\n");
}

fn bar(page: &mut String, trace: &TraceDocument, at: usize, row: &TraceRuntime, whole: u64, first_of_layer: bool) {
    let share = |micros: u64| micros.saturating_mul(10_000) / whole;
    let left = share(row.started_micros).min(10_000 - MIN_BAR);
    let width = share(row.ended_micros.saturating_sub(row.started_micros)).clamp(MIN_BAR, 10_000 - left);
    let percent = |hundredths: u64| format!("{}.{:02}%", hundredths / 100, hundredths % 100);
    let waits: Vec<String> = row
        .waited_for
        .iter()
        .chain(row.triggered_by.iter().map(|(_, emitter)| emitter))
        .filter_map(|id| trace.runtimes.iter().position(|other| other.runtime_id == *id))
        .map(|at| at.to_string())
        .collect();
    let took = row.ended_micros.saturating_sub(row.started_micros);
    let id = escape(&row.runtime_id);
    let _ = write!(
        page,
        "<div class=\"row{}\" id=r{at}><div class=name title=\"{id}\"><small>{}</small>{id}</div><div class=track>\
         <button type=button class=\"bar {}\" style=\"left:{};width:{}\" data-row={at} data-waits=\"{}\" \
         aria-label=\"{id}, {}, {} ms\"></button><span class=\"took{}</span></div>\
         <template>",
        if first_of_layer { " first" } else { "" },
        label(&format!("layer {}", row.layer), &format!("第 {} 层", row.layer)),
        status(row.status),
        percent(left),
        percent(width),
        waits.join(" "),
        status(row.status),
        millis(took),
        match (left, left + width) {
            // Behind the bar, before it, or inside where there is no other room.
            (_, end @ 0..ROOM_BEHIND) => format!("\" style=\"left:{}\">{} ms", percent(end), millis(took)),
            (ROOM_BEFORE.., _) => format!("\" style=\"right:{}\">{} ms", percent(10_000 - left), millis(took)),
            _ => format!(" inside\">{} ms", millis(took)),
        },
    );
    details(page, row);
    page.push_str("</template></div>\n");
}

fn details(page: &mut String, row: &TraceRuntime) {
    let _ = write!(
        page,
        "<h3>{} <span class=\"key {}\">{}</span></h3><dl>",
        escape(&row.runtime_id),
        status(row.status),
        status_label(row.status)
    );
    let mut fact = |name: String, value: String| {
        let _ = write!(page, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    };
    let ids = |ids: &[String]| ids.iter().map(|id| escape(id)).collect::<Vec<_>>().join(", ");
    fact(label("Package", "包"), escape(&row.plugin_id));
    fact(label("Stage", "阶段"), stage_label(row));
    fact(label("Start", "开始"), format!("{} ms", millis(row.started_micros)));
    fact(label("Took", "用时"), format!("{} ms", millis(row.ended_micros.saturating_sub(row.started_micros))));
    if let Some(reason) = &row.reason {
        fact(label("Why", "原因"), escape(reason));
    }
    if let Some(error) = &row.error {
        fact(label("Error", "错误"), format!("<code>{}</code> {}", escape(&error.code), escape(&error.message)));
    }
    if let Some((topic, emitter)) = &row.triggered_by {
        fact(label("Started by", "触发"), format!("<code>{}</code> ({})", escape(topic), escape(emitter)));
    }
    if !row.waited_for.is_empty() {
        fact(label("Waited for", "等待"), ids(&row.waited_for));
    }
    if !row.reads_from.is_empty() {
        fact(label("Reads results of", "读取结果"), ids(&row.reads_from));
    }
    if !row.reads.is_empty() {
        let reads: Vec<String> = row.reads.iter().map(|one| escape(&read(one))).collect();
        fact(label("Reads data", "读取数据"), reads.join("<br>"));
    }
    if row.writes > 0 {
        fact(label("Writes", "写入"), row.writes.to_string());
    }
    if row.events > 0 {
        fact(label("Events", "事件"), row.events.to_string());
    }
    if let Some(digest) = &row.output_digest {
        let size = row.output_bytes;
        fact(label("Output", "输出"), format!("{size} B <code>{}</code>", escape(short(digest))));
    }
    page.push_str("</dl>");
}

fn lists(page: &mut String, trace: &TraceDocument) {
    let section = |page: &mut String, name: String, heads: &[String], rows: Vec<Vec<String>>| {
        if rows.is_empty() {
            return;
        }
        let _ = write!(page, "<section>\n<h2>{name}</h2>\n<div class=scroll><table>\n<thead><tr>");
        for head in heads {
            let _ = write!(page, "<th scope=col>{head}</th>");
        }
        page.push_str("</tr></thead>\n<tbody>\n");
        for row in rows {
            let cells: Vec<String> = row.into_iter().map(|cell| format!("<td>{cell}</td>")).collect();
            let _ = writeln!(page, "<tr>{}</tr>", cells.concat());
        }
        page.push_str("</tbody>\n</table></div>\n</section>\n");
    };
    let events = trace.events.iter().map(|event| {
        let followers = if event.dropped {
            label("dropped: another of its topic came first", "已丢弃：同主题的另一个先到")
        } else {
            event.followers.iter().map(|id| escape(id)).collect::<Vec<_>>().join(", ")
        };
        vec![
            format!("<code>{}</code>", escape(&event.topic)),
            escape(&event.runtime_id),
            event.depth.to_string(),
            followers,
        ]
    });
    section(
        page,
        label("Events", "事件"),
        &[label("Topic", "主题"), label("From", "来自"), label("Depth", "深度"), label("Started", "触发了")],
        events.collect(),
    );
    let models = trace.models.iter().map(|call| {
        vec![
            escape(&call.runtime_id),
            escape(&call.slot),
            escape(call.model.as_deref().unwrap_or("–")),
            escape(&call.finish),
            format!("{} + {}", call.input_tokens, call.output_tokens),
        ]
    });
    section(
        page,
        label("Model calls", "模型调用"),
        &[
            label("Runtime", "运行单元"),
            label("Slot", "槽位"),
            label("Model", "模型"),
            label("End", "结束"),
            label("Tokens", "词元"),
        ],
        models.collect(),
    );
    let dropped = trace.commit.iter().filter(|unit| !unit.kept).map(|unit| {
        let error =
            unit.error.as_ref().map(|error| format!("<code>{}</code> {}", escape(&error.code), escape(&error.message)));
        vec![escape(&unit.runtime_id), error.unwrap_or_default()]
    });
    section(
        page,
        label("Dropped at the commit", "提交时丢弃"),
        &[label("Runtime", "运行单元"), label("Why", "原因")],
        dropped.collect(),
    );
    let idle = trace.idle.iter().map(|row| vec![escape(&row.runtime_id), escape(&row.reason)]);
    section(
        page,
        label("Took no part", "未参与"),
        &[label("Runtime", "运行单元"), label("Why", "原因")],
        idle.collect(),
    );
}

fn table(page: &mut String, trace: &TraceDocument) {
    let heads = [
        label("Stage", "阶段"),
        label("Layer", "层"),
        label("Runtime", "运行单元"),
        label("Status", "状态"),
        label("Start ms", "开始 ms"),
        label("Took ms", "用时 ms"),
        label("Waited for", "等待"),
    ];
    let _ = write!(
        page,
        "<details>\n<summary>{}</summary>\n<div class=scroll><table>\n<thead><tr>",
        label("All runtimes as a table", "所有运行单元（表格）")
    );
    for head in heads {
        let _ = write!(page, "<th scope=col>{head}</th>");
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in &trace.runtimes {
        let waited: Vec<String> = row.waited_for.iter().map(|id| escape(id)).collect();
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td class=n>{}</td><td>{}</td><td>{}</td><td class=n>{}</td><td class=n>{}</td><td>{}</td></tr>",
            stage_label(row),
            row.layer,
            escape(&row.runtime_id),
            status_label(row.status),
            millis(row.started_micros),
            millis(row.ended_micros.saturating_sub(row.started_micros)),
            waited.join(", ")
        );
    }
    page.push_str("</tbody>\n</table></div>\n</details>\n");
}
