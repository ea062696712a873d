//! Names the host itself gives out.

/// Framework tools. A package may use them under `tools.builtin` and may register none of these names. TOL-2
pub const FRAMEWORK_TOOLS: &[&str] = &[
    "create-character",
    "create-choices",
    "create-form",
    "create-notification",
    "delegate",
    "emit-event",
    "get-character",
    "get-character-schema",
    "list-characters",
    "memory-search",
    "plugin-data-get",
    "plugin-data-list",
    "plugin-data-set",
    "plugin-data-set-batch",
    "render-ui",
    "runtime-done",
    "search-tools",
    "suspend",
    "sync-characters",
    "update-character",
    "world-dimension-get",
    "world-dimension-list",
];

/// Extension points of the kernel. EXP-3
pub const KERNEL_POINTS: &[&str] = &[
    "history.compact@2",
    "media.image-flow@1",
    "prompt.history-transform@1",
    "prompt.segment@1",
    "session.world-context@1",
    "ui.slot@1",
];

/// Data slots of `ui.slot@1`. UIS-1
pub const KERNEL_SLOTS: &[&str] = &[
    "character.visual@1",
    "session.summary@1",
    "stage.backdrop@1",
    "stage.cast@1",
    "stage.choices@1",
    "stage.dialogue@1",
    "stage.music@1",
];

/// The point that a static prompt part also provides. EXP-4
pub(crate) const SEGMENT_POINT: &str = "prompt.segment@1";

/// Is the contract the kernel's own, so that only extensions provide it?
pub(crate) fn is_kernel_contract(contract: &str) -> bool {
    KERNEL_POINTS.contains(&contract) || KERNEL_SLOTS.contains(&contract)
}
