/** The product's own sources as a parser sees them: what each file imports, which texts stand in it, what it calls. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { parseSync } from 'vite'

const SRC = join(import.meta.dirname, '../../src')

/** A file of `src/`, without comments: those may say what they like. */
export interface SourceFile {
  /** Below `src/`. */
  readonly path: string
  /** Files below `src/` that it imports, for their types alone too. */
  readonly imports: readonly string[]
  /** String literals and the constant parts of templates. */
  readonly texts: readonly string[]
  readonly identifiers: ReadonlySet<string>
}

export function parsed(path: string, text: string): SourceFile {
  const { program, errors } = parseSync(path, text)
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`)
  const imports = new Set<string>()
  const texts: string[] = []
  const identifiers = new Set<string>()
  const look = (node: unknown): void => {
    if (Array.isArray(node)) for (const each of node) look(each)
    if (!isNode(node)) return
    // `Seen['queues']` is a key, no value.
    if (node.type === 'TSIndexedAccessType') {
      look(node.objectType)
      return
    }
    if (node.type === 'Literal' && typeof node.value === 'string') texts.push(node.value)
    if (node.type === 'TemplateElement') texts.push(textOf(node.value))
    if (node.type === 'Identifier' && typeof node.name === 'string') identifiers.add(node.name)
    // What is imported is no text of the file's own.
    const from = IMPORTING.includes(node.type) && isNode(node.source) ? node.source.value : undefined
    if (typeof from === 'string' && from.startsWith('.'))
      imports.add(posix.normalize(posix.join(posix.dirname(path), from)))
    for (const [name, child] of Object.entries(node)) if (from === undefined || name !== 'source') look(child)
  }
  look(program)
  return { path, imports: [...imports].toSorted(), texts, identifiers }
}

const IMPORTING = [
  'ImportDeclaration',
  'ExportNamedDeclaration',
  'ExportAllDeclaration',
  'ImportExpression',
  'TSImportType',
]

type Node = Readonly<Record<string, unknown>> & { readonly type: string }

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'

const textOf = (value: unknown): string =>
  typeof value === 'object' && value !== null && 'cooked' in value ? String(value.cooked) : ''

/** All of them but tests and what is generated from protocols. */
export const files: readonly SourceFile[] = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => /\.ts$/.test(path) && !/(\.test|_pb)\.ts$/.test(path))
  .toSorted()
  .map((path) => parsed(path, readFileSync(join(SRC, path), 'utf8')))
