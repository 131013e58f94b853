// Parses Oracle SQL from standard input by the ANTLR grammar; prints every syntax error, and exits 1 if there is any.
import { readFileSync } from "node:fs";
import { getParserFromInput } from "@griffithswaite/ts-plsql-parser";

const parser = getParserFromInput(readFileSync(0, "utf8"));
const errors = [];
parser.removeErrorListeners();
parser.addErrorListener({
  syntaxError: (_recognizer, _symbol, line, column, message) => errors.push(`${line}:${column} ${message}`),
  reportAmbiguity() {},
  reportAttemptingFullContext() {},
  reportContextSensitivity() {},
});
const statements = parser.sql_script().unit_statement_list().length;
console.log([...errors, `${statements} statements`].join("\n"));
process.exitCode = errors.length > 0 ? 1 : 0;
