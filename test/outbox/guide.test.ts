/** What docs/outbox.md says is so: its examples are the ones that are run, its tables are those of the code. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { problemsOfFile } from '../../src/config/schema.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { DEFAULT_THRESHOLDS } from '../../src/sources/outbox/served/health.ts'
import { OutboxMeter } from '../../src/sources/outbox/served/meter.ts'
import { outboxMetrics } from '../../src/sources/outbox/served/readings.ts'
import { COLUMN_NAMES, nameTable } from '../../src/sources/outbox/table/table-names.ts'
import { createKey } from '../../src/sources/outbox/writing/keys.ts'
import { examplesFolder } from './examples-package.ts'
import { codeBlocks, guide, quoted, tableRows } from './guide.ts'

describe('the guide of the outbox', () => {
  const fromFiles = codeBlocks.filter(({ from }) => from !== '')

  it.each(fromFiles)('shows $from as it is', ({ from, code }) => {
    const file = readFileSync(new URL(`../../${from}`, import.meta.url), 'utf8')
    expect(`\n${file}`).toContain(`\n${code}`)
  })

  it('shows every example', () => {
    const files = readdirSync(examplesFolder).filter((name) => name.endsWith('.ts'))
    expect(new Set(fromFiles.map(({ from }) => from))).toEqual(
      new Set(files.map((name) => `examples/outbox/${name}`)),
    )
  })

  it('has the thresholds of health', () => {
    const shown = tableRows('| above |').map((cells) => cells.map((cell) => quoted(cell)[0]))
    expect(shown).toEqual(
      Object.entries(DEFAULT_THRESHOLDS).map(([name, { degraded, unhealthy }]) => [
        name,
        String(degraded),
        String(unhealthy),
      ]),
    )
  })

  it('makes the keys that it shows', () => {
    const lines = Array.from(guide.matchAll(/^createKey\((.*)\) \/\/ '(.*)'$/gm))
    expect(lines).toHaveLength(2)
    for (const [, parts = '', key] of lines) {
      const [tenant, category, entity, kind, version] = JSON.parse(`[${parts.replaceAll("'", '"')}]`)
      expect(createKey(tenant, category, entity, kind, version)).toBe(key)
    }
  })

  it('configures what a server takes', () => {
    const examples = codeBlocks.filter(({ language }) => language === 'yaml')
    expect(examples).not.toEqual([])
    for (const { code } of examples) expect(problemsOfFile('docs/outbox.md', parse(code))).toEqual([])
  })

  it('explains every column', () => {
    const { columns } = nameTable()
    const explained = tableRows('| column |').flatMap(([names = '']) => quoted(names))
    expect(explained.toSorted()).toEqual(COLUMN_NAMES.map((name) => columns[name]).toSorted())
  })

  it('names every metric', () => {
    const backlog = { backlog: 0, failedPending: 0, oldestAgeSeconds: 0, dead: 0 }
    const text = outboxMetrics([
      {
        outbox: 'outbox',
        looked: { ok: true, backlog },
        meter: new OutboxMeter(new TestClock()).snapshot(),
        health: { status: 'ok', reasons: [] },
      },
    ])
    const told = Array.from(text.matchAll(/^# TYPE (\S+)/gm), ([, name]) => name)
    const named = tableRows('| metric |').flatMap(([names = '']) => quoted(names))
    expect(named.toSorted()).toEqual(told.toSorted())
  })

  it('points to what is there', () => {
    const anchors = Array.from(guide.matchAll(/^#+ (.*)$/gm), ([, title = '']) => `#${slugOf(title)}`)
    const links = Array.from(guide.matchAll(/\]\(([^)]+)\)/g), ([, link = '']) => link)
    for (const link of links.filter((each) => !/^https?:/.test(each))) {
      const [file = '', anchor] = link.split('#')
      if (file === '') expect(anchors).toContain(link)
      else {
        const path = join(import.meta.dirname, '../../docs', file)
        expect(existsSync(path), link).toBe(true)
        if (anchor !== undefined) expect(titlesIn(path)).toContain(anchor)
      }
    }
  })
})

const titlesIn = (path: string): readonly string[] =>
  Array.from(readFileSync(path, 'utf8').matchAll(/^#+ (.*)$/gm), ([, title = '']) => slugOf(title))

/** The anchor that a heading gets. */
const slugOf = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
