"""C++ and Python text as the lint needs it: without comments and literals, and cut into functions.

Not a parser: it relies on the code being formatted (`./dev lint` checks that first) and compiling.
"""
import ast
import re

CPP_TOKEN = re.compile(r"""
      //[^\n]*                                        # comments
    | /\*.*?\*/
    | R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"            # literals
    | "(?:\\.|[^"\\\n])*"
    | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'
""", re.S | re.X)
NOT_A_FUNCTION = re.compile(r"^(namespace|struct|class|enum|union|extern|if|for|while|switch|else|do|try|catch|return|case|default)\b")


def without_comments(text, keep_strings=True):
    """The same text, comments (and literals) blanked, line numbers kept."""
    def blank(match):
        token = match.group()
        if keep_strings and not token.startswith("/"):
            return token
        quotes = '""' if not token.startswith("/") else ""
        return quotes + "\n" * token.count("\n")
    return CPP_TOKEN.sub(blank, text)


def cpp_functions(text):
    """(name, first line, last line) of every function with a body. Lambdas belong to the function around them."""
    text = without_comments(text, keep_strings=False)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m.group().count("\n"), text, flags=re.M)
    found, stack, head, line, head_line = [], [], "", 1, 1
    for char in text:
        if char == "{":
            stack.append((head.strip(), head_line))
            head = ""
        elif char == "}":
            if stack:
                opened, opened_line = stack.pop()
                if _is_function(opened) and not any(_is_function(outer) for outer, _ in stack):
                    found.append((_name(opened), opened_line, line))
            head = ""
        elif char == ";":
            head = ""
        else:
            if not head.strip():
                head_line = line
            head += char
        line += char == "\n"
    return found


def _is_function(head):
    head = re.sub(r"^(public|private|protected)\s*:\s*", "", head)
    if NOT_A_FUNCTION.match(head) or "(" not in head:
        return False
    outside = re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", head)))
    return not re.search(r"(?<![=!<>])=(?!=)", outside.split("operator")[0])


def _name(head):
    match = re.search(r"([\w:~]+|operator\s*\S+?)\s*\(", head)
    return match.group(1) if match else head.split("(")[0][-40:]


def python_functions(text):
    """(name, first line, last line) of every Python function, inner ones too."""
    return [(node.name, node.lineno, node.end_lineno) for node in ast.walk(ast.parse(text))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
