//! Types go, positions stay.
#![allow(clippy::unwrap_used)]

use covel_strip::strip;

#[test]
fn types_become_white_space() {
    let source = "import type { A } from './a.ts';\nimport { b, type C } from './b.ts';\nexport default async (ctx: { n: number }): Promise<C> => {\n  const x = ctx.n as unknown as number;\n  return b<number>(x!) satisfies C;\n};\ninterface Z { é: string }\n";
    let stripped = strip(source).unwrap();
    assert_eq!(stripped.lines().count(), source.lines().count());
    assert!(
        !stripped.contains("interface") && !stripped.contains("Promise") && !stripped.contains("'./a.ts'"),
        "{stripped}"
    );
    for (line, name) in [(1, "'./b.ts'"), (3, "const x"), (4, "return b")] {
        let column = |text: &str| text.lines().nth(line).unwrap().find(name);
        assert_eq!(column(&stripped), column(source), "{name}");
    }
}

#[test]
fn what_is_more_than_types_is_refused_with_its_place() {
    for (source, line, column) in [
        ("\nenum A { B }", 2, 1),
        ("\n  namespace N { export const x = 1 }", 2, 3),
        ("class A {\n  constructor(private x: number) {}\n}", 2, 23),
        ("const = 1;", 1, 7),
        ("\n\nlet x: = 1", 3, 8),
    ] {
        let error = strip(source).unwrap_err();
        assert_eq!((error.line, error.column), (line, column), "{source}: {error}");
        assert!(!error.message.is_empty());
    }
}
