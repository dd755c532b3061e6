/**
 * Where in the application an error arose: function and file of the topmost frame that is neither the runtime's nor a
 * library's. Reads the stacks of JavaScript, Java, Python and Go, a bounded number of bounded lines of them; line
 * numbers are left out, because they change with every release.
 */

const MAX_STACK = 4_000
const MAX_LINES = 60
const MAX_LINE = 500

interface Frame {
  readonly call: string
  /** A file's path or name, without line numbers. */
  readonly file: string
}

/** Files of runtimes and libraries. */
const FOREIGN_FILE =
  /^node:|^internal\/|node_modules[/\\]|(?:site|dist)-packages[/\\]|[/\\]lib[/\\]python|\/go\/src\/|\/pkg\/mod\/|\/vendor\/|^<|<anonymous>/
/** Calls of the runtime. */
const FOREIGN_CALL = /^(?:javax?|jdk|(?:com\.)?sun|kotlin|scala|runtime)\./

/** `function (file)` of the topmost application frame; '' when there is none. */
export function topFrame(stack: string, message: string): string {
  const frame = stack.slice(0, MAX_LINE).trimStart().startsWith('Traceback ')
    ? pythonFrame(stack)
    : firstFrame(stack, message)
  if (frame === null) return ''
  const file = baseName(frame.file)
  return frame.call === '' ? `(${file})` : `${frame.call} (${file})`
}

/** Of a Python stack the last frame is where it happened. */
function pythonFrame(stack: string): Frame | null {
  for (const line of lines(stack.slice(-MAX_STACK)).slice(-MAX_LINES).reverse()) {
    if (!line.startsWith('File "')) continue
    const quote = line.indexOf('"', 6)
    const call = line.lastIndexOf(', in ')
    if (quote < 0 || call < quote) continue
    const frame = { call: named(line.slice(call + 5)), file: line.slice(6, quote) }
    if (isOwn(frame)) return frame
  }
  return null
}

function firstFrame(stack: string, message: string): Frame | null {
  const start = endOfMessage(stack, message)
  const all = lines(stack.slice(start, start + MAX_STACK)).slice(0, MAX_LINES)
  for (const [index, line] of all.entries()) {
    if (line.startsWith('created by ')) return null
    const frame = line.startsWith('at ') ? atFrame(line.slice(3)) : goFrame(line, all[index + 1] ?? '')
    if (frame !== null && isOwn(frame)) return frame
  }
  return null
}

/** JavaScript's stacks repeat the message, which may be longer than what is read of them. */
function endOfMessage(stack: string, message: string): number {
  if (message.length < MAX_LINE) return 0
  const start = stack.slice(0, 2 * MAX_LINE).indexOf(message.slice(0, MAX_LINE))
  return start < 0 ? 0 : start + message.length
}

function lines(text: string): string[] {
  return text.split('\n').map((line) => line.slice(0, MAX_LINE).trim())
}

/** `call (file:1:2)` or `file:1:2` in JavaScript, `package.Class.method(File.java:1)` in Java. */
function atFrame(line: string): Frame | null {
  const open = line.endsWith(')') ? line.lastIndexOf('(') : -1
  const place = open < 0 ? line : line.slice(open + 1, -1)
  const file = withoutNumbers(place)
  // Frames without a line have no file either: 'native', '<anonymous>', 'index 0'.
  if (file === place) return null
  const call = open < 0 ? '' : line.slice(0, open).trim()
  return { call: file.includes('/') || file.includes('\\') ? scriptCall(call) : javaCall(call), file }
}

/** 'async Object.<anonymous>' is no name; 'new Order' and 'Order.ship [as send]' are Order and Order.ship. */
function scriptCall(call: string): string {
  const alias = call.indexOf(' [as ')
  const bare = (alias < 0 ? call : call.slice(0, alias)).replace('async ', '').replace('new ', '')
  return named(bare)
}

/** Class and method, without their package and without what compilers add. JDK modules keep theirs, to be known. */
function javaCall(call: string): string {
  const bare = call.slice(call.lastIndexOf('/') + 1)
  return FOREIGN_CALL.test(bare) ? bare : bare.split('.').slice(-2).join('.')
}

/** A line with the call, followed by one with the file. */
function goFrame(line: string, next: string): Frame | null {
  const open = line.endsWith(')') ? line.lastIndexOf('(') : -1
  const offset = next.lastIndexOf(' +0x')
  const place = offset < 0 ? next : next.slice(0, offset)
  const file = withoutNumbers(place)
  if (open <= 0 || file === place || !file.endsWith('.go')) return null
  if (line.startsWith('panic(')) return null
  return { call: line.slice(line.lastIndexOf('/', open) + 1, open), file }
}

const named = (call: string): string => (call.includes('<') ? '' : call)

const isOwn = ({ call, file }: Frame): boolean =>
  file !== '' && !FOREIGN_FILE.test(file) && !FOREIGN_CALL.test(call)

/** 'a.ts:12:5' without ':12:5'. */
function withoutNumbers(place: string): string {
  let end = place.length
  for (let numbers = 0; numbers < 2; numbers++) {
    let colon = end
    while (colon > 0 && isDigit(place.charCodeAt(colon - 1))) colon -= 1
    if (colon === end || place.charAt(colon - 1) !== ':') break
    end = colon - 1
  }
  return place.slice(0, end)
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57

function baseName(file: string): string {
  const query = file.indexOf('?')
  const path = query < 0 ? file : file.slice(0, query)
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1)
}
