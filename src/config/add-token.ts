/** Adds a token to a configuration file as a careful person would: comments and everything else stay. */
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
import { type Document, isMap, isSeq } from 'yaml'
import { ConfigError, reasonOf } from './config-error.ts'
import { parseConfigText, settingsOf } from './file.ts'
import type { TokenEntry } from './schema.ts'

const OWNER_ONLY = 0o600

/** Adds `entry` to `auth.tokens` of `file`; a file that does not exist is created, readable by its owner only. */
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
