/** The alert rules and the dashboard: they can be read, and every metric that they name is one that servers tell. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { instant } from '../src/core/clock.ts'
import { SystemClock } from '../src/core/system-clock.ts'
import { KafkaCounters, metricsText } from '../src/sources/kafka/metrics.ts'
import { OutboxMeter } from '../src/sources/outbox/served/meter.ts'
import { outboxMetrics } from '../src/sources/outbox/served/readings.ts'
import { type ServerHere, startServer } from '../test/world/server.ts'

const read = (name: string): string =>
  readFileSync(new URL(`../docs/alerts/${name}`, import.meta.url), 'utf8')

/** Only the parts that are looked at here. */
interface Rules {
  readonly groups: readonly {
    readonly name: string
    readonly rules: readonly {
      readonly alert: string
      readonly expr: string
      readonly labels: Readonly<Record<string, string>>
      readonly annotations: Readonly<Record<string, string>>
    }[]
  }[]
}

interface Dashboard {
  readonly schemaVersion: number
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string; readonly definition?: string }[]
  }
  readonly panels: readonly {
    readonly id: number
    readonly title: string
    readonly description: string
    readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number }
    readonly targets: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[]
  }[]
}

// Our own files: the tests below look at what they are made of.
const { groups } = parse(read('prometheus.rules.yml')) as Rules
const dashboard = JSON.parse(read('grafana.json')) as Dashboard
const rules = groups.flatMap((group) => group.rules)

/** What Prometheus itself tells about who it scrapes. */
const OF_PROMETHEUS = ['up']

const WORDS = [
  'and',
  'or',
  'unless',
  'offset',
  'bool',
  'by',
  'without',
  'on',
  'ignoring',
  'group_left',
  'group_right',
]

/** The metrics that an expression names: what is neither text, label, duration, word nor function. */
function metricsIn(expression: string): string[] {
  const bare = expression
    .replace(/"[^"]*"/g, '')
    .replace(/\{[^}]*\}/g, '')
    .replace(/\[[^\]]*\]/g, '')
    .replace(/\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, '')
    .replace(/\boffset\s+\w+/g, '')
  const names = bare.matchAll(/[a-z_:][\w:]*(?!\w)(?!\s*\()/gi)
  return [...names].map(([name]) => name).filter((name) => !WORDS.includes(name))
}

/** Whether every bracket is closed by one of its kind. */
function isBalanced(expression: string): boolean {
  const open: string[] = []
  for (const sign of expression.replace(/"[^"]*"/g, '').replace(/[^()[\]{}]/g, '')) {
    if ('([{'.includes(sign)) open.push(sign)
    else if (open.pop() !== '([{'[')]}'.indexOf(sign)]) return false
  }
  return open.length === 0
}

describe('the alerts and the dashboard', () => {
  let server: ServerHere
  let known: ReadonlySet<string>

  beforeAll(async () => {
    server = await startServer({ store: 'sqlite::memory:', webhooks: {} })
    const standing = {
      state: 'reading',
      troubles: [],
      missingTopics: [],
      partitions: [],
      since: instant(0n),
    } as const
    const unread = { ok: false, trouble: { what: 'its database cannot be read', detail: '' } } as const
    const texts = [
      await (await fetch(`${server.url}/metrics`)).text(),
      metricsText(new KafkaCounters(), standing),
      outboxMetrics([
        {
          outbox: 'orders',
          looked: unread,
          meter: new OutboxMeter(new SystemClock()).snapshot(),
          health: { status: 'ok', reasons: [] },
        },
      ]),
    ]
    const names = new Set(OF_PROMETHEUS)
    for (const [, name = '', type] of texts.join('\n').matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
      const suffixes =
        type === 'histogram'
          ? ['_bucket', '_sum', '_count']
          : type === 'summary'
            ? ['', '_sum', '_count']
            : ['']
      for (const suffix of suffixes) names.add(name + suffix)
    }
    known = names
  })

  afterAll(() => server?.stop())

  it('name only metrics that servers tell', () => {
    const expressions = [
      ...rules.map(({ expr }) => expr),
      ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    ]
    expect(expressions.filter((expression) => !isBalanced(expression))).toEqual([])
    expect(expressions.filter((expression) => metricsIn(expression).length === 0)).toEqual([])
    expect(expressions.flatMap(metricsIn).filter((name) => !known.has(name))).toEqual([])
    const asked = dashboard.templating.list.flatMap(
      ({ definition }) => /\((\w+)/.exec(definition ?? '')?.[1] ?? [],
    )
    expect(asked.filter((name) => !known.has(name))).toEqual([])
  })

  it('would be told of a metric that is not there', () => {
    const expression =
      'sum by (job) (rate(bartleby_lettres_total{engine="hmac"}[5m] offset 1h)) > 5 and on (job) up == 1'
    expect(metricsIn(expression)).toEqual(['bartleby_lettres_total', 'up'])
    expect(known.has('bartleby_lettres_total')).toBe(false)
    expect(known.size).toBeGreaterThan(50)
  })

  it('have rules with a name of their own, a severity, what happened and what to do', () => {
    expect(rules.length).toBeGreaterThan(20)
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length)
    for (const { alert, labels, annotations } of rules) {
      expect(alert).toMatch(/^Bartleby[A-Z][A-Za-z]+$/)
      expect(['info', 'warning', 'critical']).toContain(labels.severity)
      expect(annotations).toEqual({
        summary: expect.stringMatching(/\S/),
        description: expect.stringMatching(/\.$/),
      })
    }
  })

  it('have a dashboard for any data source, whose panels explain themselves and do not overlap', () => {
    expect(dashboard.schemaVersion).toBe(42)
    expect(dashboard.templating.list[0]).toMatchObject({ name: 'datasource', type: 'datasource' })
    const taken = new Set<string>()
    for (const { id, title, description, gridPos, targets } of dashboard.panels) {
      expect([id, title, description]).toEqual([
        expect.any(Number),
        expect.stringMatching(/\S/),
        expect.stringMatching(/\.$/),
      ])
      // As Grafana writes a variable.
      for (const { datasource } of targets) expect(datasource.uid).toBe('$'.concat('{datasource}'))
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken.has(`${x} ${y}`)).toBe(false)
          taken.add(`${x} ${y}`)
        }
    }
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length)
  })
})
