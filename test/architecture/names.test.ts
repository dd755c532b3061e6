/** Nobody but the list knows a source by its name, in an import or in a text: all others loop over the list. */
import { describe, expect, it } from 'vitest'
import { SOURCES } from '../../src/sources/index.ts'
import { files, parsed, type SourceFile } from './product.ts'

const NAMES = SOURCES.map(({ name }) => name)

/** May name any source: the lists, the table of errors, and what the library gives to its users. */
const FREE = /^(sources\/[\w-]+\.ts|core\/errors\.ts|index\.ts)$/

/** Texts that are something else, by where they stand. */
const OTHER_WORDS: readonly (readonly [path: RegExp, name: string, what: string])[] = [
  [/^sources\/outbox\//, 'http', 'a transport of outboxes'],
  [/^sources\/outbox\//, 'kafka', 'a transport of outboxes'],
  [/^sources\/outbox\//, 'queues', 'a transport of outboxes'],
  [/^store\/numbers\.ts$/, 'queues', 'a table'],
  [
    /^history\/plain-capture\.ts$/,
    'queues',
    'the engine of captures without names, as history has it on file',
  ],
  [
    /^queues\/engines\/(engine-directory|settings)\.ts$/,
    'engines',
    'the directory of engines, which has a section and a verb',
  ],
  [
    /^outgoing\/azure\/keys\.ts$/,
    'engines',
    'the section with the unified tables, and the key of those that are read',
  ],
  [/^cli\/signatures\.ts$/, 'engines', 'a heading'],
  [/^cli\/signatures\.ts$/, 'queues', 'a heading'],
  [/^config\/aliases\.ts$/, 'http', 'the section of the server'],
  [/^http\//, 'http', 'the section of the server, or the protocol'],
]

/** Where a source is at home. Plain queues are a layer, too. */
const isHome = (path: string, name: string): boolean =>
  path.startsWith(`sources/${name}/`) || (name === 'queues' && path.startsWith('queues/'))

const isOther = (path: string, name: string): boolean =>
  OTHER_WORDS.some(([where, word]) => word === name && where.test(path))

/** Whether a text is a name, alone or in front of a dot, or has it as a value in SQL. */
const hasName = (text: string, name: string): boolean =>
  text === name || text.startsWith(`${name}.`) || text.includes(`'${name}'`)

/** The sources that a file names and must not. */
function namedBy({ path, imports, texts }: SourceFile): readonly string[] {
  if (FREE.test(path)) return []
  const found = NAMES.filter((name) => !isHome(path, name))
  return [
    ...found
      .filter((name) => imports.some((to) => to.startsWith(`sources/${name}/`)))
      .map((name) => `${path} imports ${name}`),
    ...found
      .filter((name) => !isOther(path, name) && texts.some((text) => hasName(text, name)))
      .map((name) => `${path} says ${name}`),
  ]
}

describe('a source', () => {
  it('is named by nobody but itself and the list', () => {
    expect(files.flatMap(namedBy)).toEqual([])
  })

  it('is not named by words that are something else', () => {
    const needed = OTHER_WORDS.filter(([where, name]) =>
      files.some(({ path, texts }) => where.test(path) && texts.some((text) => hasName(text, name))),
    )
    expect(needed).toEqual(OTHER_WORDS)
  })
})

describe('a file that names a source', () => {
  it.each([
    `import { KAFKA } from '../sources/kafka/event.ts'`,
    `const late = await import('../sources/kafka/event.ts')`,
    `type Event = import('../sources/kafka/event.ts').Event`,
    `if (source === 'kafka') send()`,
    `record('kafka.received')`,
    `const verb = \`kafka.\${operation}\``,
    `const text = "WHERE source = 'kafka'"`,
  ])('is found: %s', (text) => {
    expect(namedBy(parsed('letters/x.ts', text))).toHaveLength(1)
  })

  it.each([
    `// letters of 'kafka'`,
    `const kafka = brokers`,
    `const title = 'kafkaesque'`,
    `import { Kafka } from '@platformatic/kafka'`,
  ])('is not: %s', (text) => {
    expect(namedBy(parsed('letters/x.ts', text))).toEqual([])
  })
})
