/**
 * Stacks for people: an error with what caused it, each with its frames, those of the application told from those of libraries
 * and the runtime. Reads what JavaScript, Java, Python and Go write; of anything else the lines are shown as they are.
 */

export interface Frame {
  readonly text: string
  /** Of the application. */
  readonly isOwn: boolean
}

/** One error of a chain. */
export interface ErrorLink {
  /** Class and message; may have several lines. */
  readonly heading: string
  readonly frames: readonly Frame[]
  /** What else was printed of it, such as its members. */
  readonly details: string
}

/** Files and calls of runtimes and libraries. */
const FOREIGN =
  /node:|node_modules[/\\]|\(internal\/|at internal\/|<anonymous>|\(native\)|\(index \d+\)|(?:site|dist)-packages[/\\]|[/\\]lib[/\\]python|\/go\/src\/|\/pkg\/mod\/|\/vendor\/|^at (?:[\w.]+\/)?(?:javax?|jdk|sun|com\.sun|kotlin|scala)\.|^runtime\./

const FRAME = /^\s*(?:at\s|File ")/
const GO_PLACE = /^\s+\S+\.go:\d+/
const MORE = /^\s*\.\.\. \d+ /
/** Java's `Caused by:`, and `[cause]:` as Node prints it. */
const CAUSE = /^\s*(?:Caused by: |\[cause\]: )/
const PYTHON = /^Traceback \(most recent call last\):/
/** Between two Python errors; the cause stands before it. */
const PYTHON_BETWEEN =
  /^(?:The above exception was the direct cause of the following exception|During handling of the above exception, another exception occurred):\s*$/

/** The error first, then what caused it, and so on. */
export function chainOf(stack: string): readonly ErrorLink[] {
  const lines = stack.split(/\r?\n/)
  const links = lines.some((line) => PYTHON.test(line)) ? pythonChain(lines) : plainChain(lines)
  return links.filter(({ heading, frames }) => heading !== '' || frames.length > 0)
}

function plainChain(lines: readonly string[]): ErrorLink[] {
  const parts: string[][] = [[]]
  for (const line of lines) {
    if (CAUSE.test(line)) parts.push([line.replace(CAUSE, '')])
    else parts.at(-1)?.push(line)
  }
  return parts.map(linkOf)
}

function linkOf(lines: readonly string[]): ErrorLink {
  const heading: string[] = []
  const frames: Frame[] = []
  const details: string[] = []
  for (const [index, line] of lines.entries()) {
    if (GO_PLACE.test(line) && index > 0) {
      // A line with the call comes before the one with its place, and was taken for a part of the heading, or for a detail.
      const call = frames.length === 0 ? heading.pop() : details.pop()
      frames.push(frameOf(`${call ?? ''} ${line.trim()}`))
    } else if (FRAME.test(line)) frames.push(frameOf(line))
    else if (MORE.test(line)) frames.push({ text: line.trim(), isOwn: false })
    else if (frames.length === 0) heading.push(line)
    // The end of what Node prints around causes.
    else if (line.trim() !== '' && !/^\s*[}\]]/.test(line)) details.push(line.trim())
  }
  return { heading: heading.join('\n').trim(), frames, details: details.join('\n') }
}

/** A frame ends with ` {` where Node prints members of the error after it. */
function frameOf(line: string): Frame {
  const text = line.trim().replace(/ \{$/, '')
  return { text, isOwn: !FOREIGN.test(text) }
}

/** Python prints causes first, and in each the call that failed last. */
function pythonChain(lines: readonly string[]): ErrorLink[] {
  const parts: string[][] = [[]]
  for (const line of lines) {
    if (PYTHON_BETWEEN.test(line)) parts.push([])
    else parts.at(-1)?.push(line)
  }
  return parts.map(pythonLink).reverse()
}

function pythonLink(lines: readonly string[]): ErrorLink {
  const heading: string[] = []
  const frames: Frame[] = []
  for (const line of lines) {
    const last = frames.at(-1)
    if (PYTHON.test(line)) continue
    if (FRAME.test(line)) frames.push(frameOf(line))
    // The line of the source.
    else if (last !== undefined && /^\s{4}/.test(line) && heading.length === 0) {
      frames[frames.length - 1] = { ...last, text: `${last.text}\n    ${line.trim()}` }
    } else if (heading.length > 0 || line.trim() !== '') heading.push(line)
  }
  return { heading: heading.join('\n').trim(), frames: frames.reverse(), details: '' }
}
