"""``python -m scripts.figures [TREE]``: the layout of ``src`` in figures: files, folders, functions, names twice.

Modules are files with code of their own: an ``__init__`` that has only a docstring is not counted.
"""

import argparse
import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLES = ("settings/keys.py", "metrics/catalogue.py", "documents/guard_state.py", "guard/keys.py")
"""As long as what they list."""
LONG_FUNCTION, LONGER_FUNCTION = 40, 60
CRUMB = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", nargs="?", type=Path, default=ROOT, help="another checkout (default: this one)")
    source = parser.parse_args().tree / "src" / "brimline"
    for title, figure in figures(source):
        print(f"{title:<50} {figure}")


def figures(source: Path) -> Iterator[tuple[str, str]]:
    files = {path: path.read_text() for path in sorted(source.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in files.items()}
    modules = [path for path, tree in trees.items() if path.name != "__init__.py" or len(tree.body) > 1]
    sizes = {path: files[path].count("\n") for path in modules}
    outside = sorted(size for path, size in sizes.items() if not str(path).endswith(TABLES))
    folder, most = Counter(path.parent for path in files).most_common(1)[0]
    yield "files in the fullest folder", f"{most} ({folder.relative_to(source)})"
    yield "modules", f"{len(modules)} ({sum('torture' in path.parts for path in modules)} of them in torture)"
    yield f"modules under {CRUMB} lines", str(sum(size < CRUMB for size in sizes.values()))
    torture = sum(size for path, size in sizes.items() if "torture" in path.parts)
    yield "lines", f"{sum(text.count(chr(10)) for text in files.values())} ({torture} of them in torture)"
    yield "lines of a module, p90 and most (tables excepted)", f"{outside[len(outside) * 9 // 10]} and {outside[-1]}"
    lengths = [length for tree in trees.values() for length in function_lengths(tree)]
    yield f"functions above {LONG_FUNCTION} lines", str(sum(length > LONG_FUNCTION for length in lengths))
    yield f"functions above {LONGER_FUNCTION} lines", str(sum(length > LONGER_FUNCTION for length in lengths))
    twice = class_names_in_several_rooms(source, trees)
    yield "class names in two rooms", f"{len(twice)} ({', '.join(twice)})"
    readers = [path for path, text in files.items() if re.search(r"\bjson\.loads?\(", text)]
    yield "files that call json.load(s)", str(len(readers))
    yield "node_id is not None", str(sum(text.count("node_id is not None") for text in files.values()))


def function_lengths(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1


def class_names_in_several_rooms(source: Path, trees: dict[Path, ast.Module]) -> list[str]:
    rooms: defaultdict[str, set[str]] = defaultdict(set)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                rooms[node.name].add(path.relative_to(source).parts[0])
    return sorted(name for name, found in rooms.items() if len(found) > 1)


if __name__ == "__main__":
    main()
