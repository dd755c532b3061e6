import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../config/load.ts'
import { ConfigError } from '../../core/settings/config-error.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bartleby-config-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function load(yaml: string) {
  const file = join(folder, 'bartleby.yaml')
  writeFileSync(file, yaml)
  return loadConfig({ file, env: {} })
}

function problems(yaml: string): readonly string[] {
  try {
    load(yaml)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map((problem) => problem.replace(/^.*?bartleby\.yaml[^:]*: /, ''))
  }
}

describe('outboxes in a configuration', () => {
  it('are none unless they are given', () => {
    expect(load('port: 1').outbox).toEqual([])
  })

  it('take the options of a dispatcher under their own names, and transports in both forms', () => {
    const { outbox } = load(`
outbox:
  - name: orders
    url: postgres://app:secret@db/shop
    table: sales.OutboxMessages
    naming: pascal
    columns: { eventType: Name }
    transport: { type: http, url: https://billing.example/events, headers: { authorization: Bearer x }, secret: whsec_abc }
    maxRetries: 3
    jitter: 0.1
    useExponentialBackoff: false
    onDead: skip
    retention: { processed: 0 }
    health: { backlog: { degraded: 5 } }
  - { name: mail, transport: 'queue:mail' }
  - { name: trace, table: trace, transport: log }
  - { name: watched, table: watched }
`)
    expect(outbox.map(({ name, transport }) => [name, transport])).toEqual([
      [
        'orders',
        {
          type: 'http',
          url: 'https://billing.example/events',
          headers: { authorization: 'Bearer x' },
          secret: 'whsec_abc',
        },
      ],
      ['mail', 'queue:mail'],
      ['trace', 'log'],
      ['watched', undefined],
    ])
    expect(outbox[0]).toMatchObject({
      maxRetries: 3,
      jitter: 0.1,
      onDead: 'skip',
      retention: { processed: 0 },
    })
  })

  it('are refused with the key that is wrong and what is allowed', () => {
    expect(
      problems(`
outbox:
  - { name: 'a b', transport: ftp://x }
  - { transport: { type: post } }
  - { name: b, maxRetries: -1, batchsize: 3, naming: camel }
`),
    ).toEqual([
      "outbox[0].name: 'a b' is not allowed; allowed: 1 to 64 letters, digits, '.', '_' or '-', the first one a letter or digit",
      "outbox[0].transport: 'ftp://x' is not allowed; allowed: an address ('https://…'), 'queue:NAME', 'kafka:TOPIC', 'log', 'none', or a mapping with type and what the type needs",
      "outbox[1].transport.type: 'post' is not allowed; allowed: one of 'http', 'queue', 'kafka', 'log', 'none'",
      expect.stringMatching(/^outbox\[1\]\.name: is missing/),
      'outbox[2].maxRetries: -1 is not allowed; allowed: a whole number from 0 to 1000',
      expect.stringMatching(/^outbox\[2\]\.batchsize: .*batchSize/),
      "outbox[2].naming: 'camel' is not allowed; allowed: one of 'snake', 'pascal'",
    ])
  })

  it('must have names of their own and transports that are whole', () => {
    expect(
      problems(`
outbox:
  - { name: a, transport: { type: http } }
  - { name: a, table: other, transport: { type: log, url: 'https://x.example' } }
  - { name: b, table: third, transport: { type: queue, queue: q, secret: abc } }
`),
    ).toEqual([
      "outbox[0].transport.url: is missing; allowed: 'http://…' or 'https://…'",
      "outbox[1].transport.url: a transport of type 'log' has none",
      "outbox[2].transport.secret: a transport of type 'queue' has none",
      'outbox[1].name: is the same as that of outbox[0]',
    ])
  })

  it('keep a list of refused addresses as it is written, also an empty one', () => {
    const transport = (refused: string) =>
      `outbox: [{ name: a, transport: { type: http, url: 'https://x.example', refusedAddresses: ${refused} } }]`
    for (const [written, list] of [
      ['[]', []],
      ['[private]', ['private']],
    ] as const)
      expect(load(transport(written)).outbox[0]?.transport).toMatchObject({ refusedAddresses: list })
    expect(problems(transport('[nowhere]'))).toEqual([
      "outbox[0].transport.refusedAddresses[0]: 'nowhere' is not allowed; allowed: 'loopback', 'private', 'link-local', 'metadata' or a range such as '10.0.0.0/8'",
    ])
  })

  it('go to Kafka through the connection of its section, or through one of their own', () => {
    const { outbox } = load(`
kafka: { servers: ['kafka:9092'] }
outbox:
  - { name: a, table: a, transport: 'kafka:orders' }
  - { name: b, table: b, transport: { type: kafka, topic: orders, compression: gzip } }
  - name: c
    table: c
    transport: { type: kafka, topic: orders, servers: ['other:9092'], security_protocol: SSL, client_id: c, ssl_password: null }
`)
    expect(outbox.map(({ transport }) => transport)).toEqual([
      'kafka:orders',
      { type: 'kafka', topic: 'orders', compression: 'gzip' },
      { type: 'kafka', topic: 'orders', servers: ['other:9092'], security_protocol: 'SSL', client_id: 'c' },
    ])
  })

  it('need a topic and servers for Kafka, and keys that fit', () => {
    expect(
      problems(`
outbox:
  - { name: a, table: a, transport: 'kafka:orders' }
  - { name: b, table: b, transport: { type: kafka, topic: orders } }
  - { name: c, table: c, transport: { type: kafka, servers: ['a:1'] } }
  - { name: d, table: d, transport: { type: kafka, topic: orders, sasl_username: me } }
  - { name: e, table: e, transport: { type: kafka, topic: orders, servers: ['a:1'], sasl_username: me } }
  - { name: f, table: f, transport: { type: kafka, topic: orders, servers: ['a:1'], url: 'https://x.example' } }
  - { name: g, table: g, transport: { type: log, topic: orders } }
`),
    ).toEqual([
      'outbox[0].transport: there are no servers; give them with the transport, or in the section kafka',
      'outbox[1].transport.servers: there are no servers; give them with the transport, or in the section kafka',
      'outbox[2].transport.topic: is missing; allowed: the name of a topic',
      'outbox[3].transport.sasl_username: needs servers beside it; without them the section kafka is used',
      "outbox[4].transport.sasl_username: does not fit security_protocol 'PLAINTEXT'",
      "outbox[5].transport.url: a transport of type 'kafka' has none",
      "outbox[6].transport.topic: a transport of type 'log' has none",
    ])
    expect(
      problems(`
kafka: { servers: ['a:1'] }
outbox:
  - { name: a, table: a, transport: 'kafka:no topic' }
  - { name: b, table: b, transport: { type: kafka, topic: '..', compression: zip, servers: [a] } }
`).map((problem) => problem.split(': ', 1)[0]),
    ).toEqual([
      'outbox[0].transport',
      'outbox[1].transport.topic',
      'outbox[1].transport.compression',
      'outbox[1].transport.servers[0]',
    ])
  })

  it('must have tables of their own, with names that can be', () => {
    expect(
      problems(`
outbox:
  - { name: a, url: 'postgres://db/shop' }
  - { name: b, url: 'postgres://db/shop', table: outbox_messages, transport: log }
  - { name: c, url: 'postgres://db/other' }
  - { name: d, table: a.b.c }
  - { name: e, table: five, columns: { colour: x } }
  - { name: f, table: six, columns: { id: x, tenantId: x } }
  - { name: g, table: seven, columns: { eventType: error } }
`),
    ).toEqual([
      'outbox[1].table: is the same as that of outbox[0]',
      "outbox[3].table: 'a.b.c' has more than a schema and a name",
      expect.stringMatching(/^outbox\[4\]\.columns\.colour: there is no such column; there are id, /),
      "outbox[5].columns.tenantId: 'x' is the column of id",
      "outbox[6].columns.eventType: 'error' is the column of error",
    ])
  })

  it('lie where their producers can reach them', () => {
    expect(problems(`outbox: [{ name: a, url: 'sqlite::memory:' }]`)).toEqual([
      expect.stringMatching(/^outbox\[0\]\.url: .*; allowed: 'sqlite:PATH' or 'postgres:/),
    ])
  })

  it('take a key without a value for one that is left out', () => {
    const { outbox } = load('outbox: [{ name: a, url: null, table: null, transport: null }]')
    expect(outbox).toEqual(load('outbox: [{ name: a }]').outbox)
    expect(outbox[0]).not.toHaveProperty('url')
  })

  it('show neither passwords nor secrets', () => {
    const told = problems(`
outbox:
  - { name: a, url: 'mysql://root:hunter2@db/x', transport: { type: http, url: 'https://x.example', secret: 'has space' } }
`).join('\n')
    expect(told).toContain('outbox[0].url')
    expect(told).toContain('outbox[0].transport.secret')
    expect(told).not.toContain('hunter2')
    expect(told).not.toContain('has space')
  })
})
