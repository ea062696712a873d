import { Component, type ReactNode } from "react";

interface Props {
  /** Drawn instead of the children after they failed. */
  fallback: ReactNode;
  /** A change of this value gives the children another chance. */
  resetKey?: unknown;
  children: ReactNode;
}

/** Keeps a failure while drawing inside its part of the page. */
export class ErrorBoundary extends Component<Props, { failed: boolean; resetKey: unknown }> {
  override state = { failed: false, resetKey: this.props.resetKey };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  static getDerivedStateFromProps(props: Props, state: { failed: boolean; resetKey: unknown }) {
    return props.resetKey === state.resetKey ? null : { failed: false, resetKey: props.resetKey };
  }

  override render() {
    return this.state.failed ? this.props.fallback : this.props.children;
  }
}
