//! What happens in a turn: selection, walking, agents, tools, commit.
