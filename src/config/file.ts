/** Reads a configuration file: YAML, and JSON as a part of it. */
import { readFileSync } from 'node:fs'
import { type Document, LineCounter, parseDocument } from 'yaml'
import { isRecord, withoutAliases } from './aliases.ts'
import { checkSettings } from './check.ts'
import { ConfigError, reasonOf } from './config-error.ts'

/** What a file holds, keys and values checked; an empty file holds nothing. */
export function readConfigFile(file: string): Record<string, unknown> {
  return settingsOf(file, parseConfigText(file, readText(file)))
}

/** Parses the text of `file` and keeps its comments. */
export function parseConfigText(file: string, text: string): Document {
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
export function settingsOf(file: string, document: Document): Record<string, unknown> {
  const settings = plainValue(file, document) ?? {}
  const problems = checkSettings(file, settings)
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
