/** The text of docs/errors.md, from the one table of errors. */

import { plainStatus } from '../src/api/envelope.ts'
import { ERRORS, type ErrorCode } from '../src/core/errors.ts'

const HEAD = `# Errors

Generated from \`src/core/errors.ts\` by \`npm run docs:errors\`; do not edit.

Every failure has a code (in the library: \`error.code\` of a \`BartlebyError\`) and a message. On the queue API the
reply is \`{"code": <status>, "code_text": "…", "message": "…"}\` with the same HTTP status (*queues* below). On the
office API, below \`/api/\`, it is \`{"status": "Failed", "correlationId": "…", "timestamp": "…", "error": {"code": "…",
"message": "…", "details": {…}}}\` with the HTTP status under *office*; \`details\` has the values of the words in braces,
where the office itself refuses. Of a message, the part before the first \`;\` never changes; words in braces stand for
values of the request. *Again* marks failures that may go away by themselves: the same call can be tried again.

| code | queues | office | again | message |
|---|---|---|---|---|
`

/** Documentation of all errors as Markdown. */
export function errorsDoc(): string {
  const rows = Object.entries(ERRORS).map(([code, { message, queues, retryable }]) => {
    const shown = message.replaceAll('|', '\\|')
    // The entries of the table are named by its codes.
    const office = plainStatus(code as ErrorCode)
    return `| \`${code}\` | ${queues} | ${office} | ${retryable ? 'yes' : ''} | ${inCode(shown)} |\n`
  })
  return HEAD + rows.join('')
}

/** As code, so that Markdown leaves braces, quotes and angle brackets alone. */
const inCode = (text: string): string => (text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``)
