/** Reads a configuration file: YAML, and JSON as a part of it; and adds a token to one as a careful person would. */
import { randomUUID } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { type Document, isMap, isSeq, LineCounter, parseDocument } from 'yaml'
import type { TokenEntry } from '../api/auth.ts'
import { ConfigError, reasonOf } from '../core/settings/config-error.ts'
import { isRecord } from '../core/settings/given.ts'
import { withoutAliases } from './aliases.ts'
import { problemsOfFile } from './schema.ts'

/** What a file holds, keys and values checked; an empty file holds nothing. */
export function readConfigFile(file: string): Record<string, unknown> {
  return settingsOf(file, parseConfigText(file, readText(file)))
}

/** Parses the text of `file` and keeps its comments. */
function parseConfigText(file: string, text: string): Document {
  const lines = new LineCounter()
  const document = parseDocument(text, { prettyErrors: false, lineCounter: lines })
  if (document.errors.length > 0) {
    throw new ConfigError(
      document.errors.map((error) => {
        const { line, col } = lines.linePos(error.pos[0])
        return `${file}: line ${line}, column ${col}: ${withoutExcerpt(error.message)}`
      }),
    )
  }
  return document
}

/** The checked settings of a parsed file. */
function settingsOf(file: string, document: Document): Record<string, unknown> {
  const settings = plainValue(file, document) ?? {}
  const problems = problemsOfFile(file, settings)
  if (problems.length > 0 || !isRecord(settings)) throw new ConfigError(problems)
  return withoutAliases(settings)
}

function plainValue(file: string, document: Document): unknown {
  try {
    return document.toJS()
  } catch {
    // Aliases that are unresolved or multiply without bound.
    throw new ConfigError([`${file}: its aliases cannot be resolved`])
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError([`${file}: cannot be read: ${reasonOf(error)}`])
  }
}

/** The parser quotes the text it stumbled over, which may be a secret. */
const withoutExcerpt = (message: string): string => (message.split(/[:"'`\n]/, 1)[0] ?? '').trim()

const OWNER_ONLY = 0o600

/** Adds `entry` to `auth.tokens` of `file`; comments and everything else stay. A file that does not exist is created, readable by its owner only. */
export function addToken(file: string, entry: TokenEntry): void {
  try {
    const present = existsSync(file)
    const target = present ? realpathSync(file) : file
    const text = present ? readFileSync(target, 'utf8') : ''
    replaceFile(target, withToken(file, text, entry), present ? statSync(target).mode & 0o777 : OWNER_ONLY)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    throw new ConfigError([`${file}: cannot be changed: ${reasonOf(error)}`])
  }
}

function withToken(file: string, text: string, entry: TokenEntry): string {
  const document = parseConfigText(file, text)
  settingsOf(file, document)
  const { name, role, sha256 } = entry
  const asJson = isMap(document.contents) && document.contents.flow === true
  makeCollections(document, asJson)
  document.addIn(['auth', 'tokens'], document.createNode({ name, role, sha256 }, { flow: asJson }))
  settingsOf(file, document)
  // JSON must stay JSON, for other programs that read the file.
  return document.toString(
    asJson ? { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'QUOTE_DOUBLE' } : {},
  )
}

/** Makes `auth.tokens` a list that can be added to, where it is missing, empty or null. */
function makeCollections(document: Document, asJson: boolean): void {
  if (!isMap(document.getIn(['auth'], true))) document.setIn(['auth'], document.createNode({}))
  const tokens = document.getIn(['auth', 'tokens'], true)
  if (!isSeq(tokens)) document.setIn(['auth', 'tokens'], document.createNode([]))
  else if (tokens.items.length === 0 && !asJson) tokens.flow = false
}

/** Replaces a file in one step, so that a crash leaves the old or the new one, never half. */
function replaceFile(file: string, text: string, mode: number): void {
  const draft = `${file}.${randomUUID()}.tmp`
  try {
    const descriptor = openSync(draft, 'wx', mode)
    try {
      writeSync(descriptor, text)
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    renameSync(draft, file)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
}
