import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../../config/load.ts'
import { ConfigError } from '../../../core/settings/config-error.ts'
import { type KafkaOptions, kafkaConnection, kafkaSettings, kafkaWarnings } from './options.ts'

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

function problemsOf(read: () => unknown): readonly string[] {
  try {
    read()
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map((problem) => problem.replace(/^.*?bartleby\.yaml: /, ''))
  }
}

const HASH = '7ad83b6b9183c91674eec897935bc154ba9ff9704f8be0840e77f476b5062b6e'
const WHOLE = {
  enabled: true,
  servers: ['kafka-1:9092'],
  token_hashes: [HASH],
  services: { wps: { dlq_topic: 'wps_dlq' } },
} satisfies KafkaOptions

/** What is given over what is enough. */
const settingsOf = (given: object) => {
  const settings = kafkaSettings({ ...WHOLE, ...given }, folder)
  if (settings === null) throw new Error('it is not enabled')
  return settings
}

describe('the section kafka', () => {
  it('is off, and needs nothing', () => {
    expect(kafkaSettings(load('port: 1').kafka)).toBeNull()
    expect(kafkaSettings(load('kafka:').kafka)).toBeNull()
    expect(kafkaSettings(load('kafka: { enabled: false, services: { wps: [a, b] } }').kafka)).toBeNull()
    expect(kafkaConnection({})).toBeNull()
    expect(
      kafkaWarnings({ security_protocol: 'SASL_PLAINTEXT', sasl_mechanism: 'OAUTHBEARER', sasl_token: 't' }),
    ).toEqual([])
  })

  it('has a default for everything that can have one', () => {
    expect(settingsOf({})).toEqual({
      connection: {
        servers: ['kafka-1:9092'],
        clientId: 'bartleby',
        protocol: 'PLAINTEXT',
        tls: null,
        sasl: null,
      },
      groupId: 'bartleby',
      tokenHashes: [HASH],
      previewLimit: 100,
      previewMaxBytes: 5_242_880,
      services: new Map([
        [
          'wps',
          {
            name: 'wps',
            dlqTopic: 'wps_dlq',
            retryTopic: 'retry-wps',
            profile: 'hexkit',
            aliases: [],
            originalTopics: [],
            types: [],
            stripHeaders: [],
            keyFormat: 'plain',
          },
        ],
      ]),
      dlqTopics: [],
      acceptUnlistedServices: false,
      processors: [],
      processorTimeoutMs: 5_000,
      publishTimeoutMs: 30_000,
      busyWaitMs: 10_000,
      onUncertain: 'hold',
      onLaterSameKey: 'warn',
      maxMessageBytes: 1_048_576,
      compression: 'none',
      fetchMaxBytes: 52_428_800,
      topicRefreshMs: 30_000,
      generateCorrelationId: true,
      sessionTimeoutMs: 10_000,
    })
  })

  it('takes every key, from a file', () => {
    const { kafka } = load(`
kafka:
  enabled: true
  servers: ["kafka-1:9092", "[::1]:9092"]
  client_id: office
  group_id: the group
  token_hashes: ["${HASH.toUpperCase()}"]
  preview_max: 25
  preview_max_bytes: 1000
  services:
    wps: {dlq_topic: wps_dlq, retry_topic: wps_retry}
    ucs: [ucs_dlq, ucs_retry]
    dcs: {dlq_topic: dlq, aliases: null}
    irs: {dlq_topic: dlq, aliases: [irs-eu], types: [upserted, deleted, 'x*']}
    billing:
      dlq_topic: orders-dlt
      profile: generic
      retry_topic: $original
      original_topics: [orders, 'shop-*']
      strip_headers: [x-origin, 'repl-*']
      key_format: uber
  dlq_topics: [stray-dlq]
  accept_unlisted_services: true
  processors:
    - {match: {service: wps, topic: orders, type: [created, deleted]}, module: ./processors/wps.js}
    - {module: /opt/all.ts, export: named}
  processor_timeout_ms: 1
  publish_timeout_ms: 2
  busy_wait_ms: 0
  on_uncertain: resend
  on_later_same_key: refuse
  max_message_bytes: 3
  compression: zstd
  fetch_max_bytes: 4
  topic_refresh_ms: 10
  generate_correlation_id: false
  session_timeout_ms: 6000
`)
    // Wherever the server was started.
    const settings = kafkaSettings(kafka, '/')
    expect(settings).toMatchObject({
      connection: { servers: ['kafka-1:9092', '[::1]:9092'], clientId: 'office' },
      groupId: 'the group',
      tokenHashes: [HASH],
      previewLimit: 25,
      previewMaxBytes: 1_000,
      dlqTopics: ['stray-dlq'],
      acceptUnlistedServices: true,
      processors: [
        {
          match: { service: ['wps'], topic: ['orders'], type: ['created', 'deleted'] },
          module: join(folder, 'processors/wps.js'),
          export: 'default',
        },
        { match: { service: null, topic: null, type: null }, module: '/opt/all.ts', export: 'named' },
      ],
      processorTimeoutMs: 1,
      publishTimeoutMs: 2,
      busyWaitMs: 0,
      onUncertain: 'resend',
      onLaterSameKey: 'refuse',
      maxMessageBytes: 3,
      compression: 'zstd',
      fetchMaxBytes: 4,
      topicRefreshMs: 10,
      generateCorrelationId: false,
      sessionTimeoutMs: 6_000,
    })
    const services = [...(settings?.services.values() ?? [])]
    expect(services.map(({ name, dlqTopic, retryTopic }) => [name, dlqTopic, retryTopic])).toEqual([
      ['wps', 'wps_dlq', 'wps_retry'],
      ['ucs', 'ucs_dlq', 'ucs_retry'],
      ['dcs', 'dlq', 'retry-dcs'],
      ['irs', 'dlq', 'retry-irs'],
      ['billing', 'orders-dlt', '$original'],
    ])
    expect(services[3]).toMatchObject({ aliases: ['irs-eu'], types: ['upserted', 'deleted', 'x*'] })
    expect(services[4]).toMatchObject({
      profile: 'generic',
      originalTopics: ['orders', 'shop-*'],
      stripHeaders: ['x-origin', 'repl-*'],
      keyFormat: 'uber',
    })
  })

  it('may have both names of the preview limit if they agree', () => {
    expect(settingsOf({ preview_limit: 7, preview_max: 7 }).previewLimit).toBe(7)
  })

  it('may list no service where unlisted ones are accepted', () => {
    const given = { services: {}, accept_unlisted_services: true, dlq_topics: ['dlq'] }
    expect(settingsOf(given).services.size).toBe(0)
    expect(kafkaWarnings({ ...WHOLE, ...given })).toEqual([])
    expect(kafkaWarnings({ ...WHOLE, ...given, dlq_topics: [] })).toEqual([
      'kafka.dlq_topics: is empty, and no service is listed: there is no topic to read',
    ])
  })

  const services = (more: object, others: object = {}) => ({
    services: { wps: { dlq_topic: 'wps_dlq', ...more }, ...others },
  })
  const generic = { profile: 'generic', retry_topic: '$original', original_topics: ['orders'] }

  it.each<readonly [key: string, given: object]>([
    // One by one
    ['enabled', { enabled: 'yes' }],
    ['server', { server: ['a:1'] }],
    ['servers', { servers: 'a:1' }],
    ['servers[0]', { servers: ['a'] }],
    ['servers[0]', { servers: ['a:0'] }],
    ['servers[0]', { servers: ['a:65536'] }],
    ['servers[1]', { servers: ['a:1', 'kafka://a:1'] }],
    ['client_id', { client_id: '' }],
    ['client_id', { client_id: 7 }],
    ['group_id', { group_id: 'a\nb' }],
    ['token_hashes', { token_hashes: HASH }],
    ['token_hashes[0]', { token_hashes: [HASH.slice(1)] }],
    ['token_hashes[0]', { token_hashes: [`${HASH.slice(1)}g`] }],
    ['preview_limit', { preview_limit: 0 }],
    ['preview_limit', { preview_limit: 10_001 }],
    ['preview_max', { preview_max: 1.5 }],
    ['preview_max_bytes', { preview_max_bytes: 0 }],
    ['services', { services: [] }],
    ['services.wps', { services: { wps: 'wps_dlq' } }],
    ['services.wps', { services: { wps: ['wps_dlq'] } }],
    ['services.wps', { services: { wps: ['wps_dlq', 'wps_retry', 'more'] } }],
    ['services.wps', { services: { wps: ['wps_dlq', 'no topic'] } }],
    ['services.wps.dlq_topic', { services: { wps: {} } }],
    ['services.wps.dlq_topic', services({ dlq_topic: 'a b' })],
    ['services.wps.dlq_topic', services({ dlq_topic: '..' })],
    ['services.wps.dlq_topic', services({ dlq_topic: 'x'.repeat(250) })],
    ['services.wps.retry_topic', services({ retry_topic: '' })],
    ['services.wps.retry_topic', services({ retry_topic: '$orignal' })],
    ['services.wps.profile', services({ profile: 'hex' })],
    ['services.wps.aliases', services({ aliases: 'a' })],
    ['services.wps.aliases[0]', services({ aliases: [''] })],
    ['services.wps.original_topics[0]', services({ original_topics: ['a*b'] })],
    ['services.wps.types[0]', services({ types: [''] })],
    ['services.wps.types[0]', services({ types: ['a*b'] })],
    ['services.wps.strip_headers[0]', services({ profile: 'generic', strip_headers: ['*a'] })],
    ['services.wps.key_format', services({ key_format: 'proto' })],
    ['services.wps.topic', services({ topic: 'x' })],
    ['dlq_topics[0]', { dlq_topics: ['a/b'] }],
    ['accept_unlisted_services', { accept_unlisted_services: 1 }],
    ['processors', { processors: {} }],
    ['processors[0].module', { processors: [{}] }],
    ['processors[0].module', { processors: [{ module: 'https://example.com/p.js' }] }],
    ['processors[0].module', { processors: [{ module: 'file:///p.js' }] }],
    ['processors[0].module', { processors: [{ module: 'data:text/javascript,x.js' }] }],
    ['processors[0].module', { processors: [{ module: './p.wasm' }] }],
    ['processors[0].module', { processors: [{ module: './.js/' }] }],
    ['processors[0].export', { processors: [{ module: './p.js', export: '' }] }],
    ['processors[0].match.queue', { processors: [{ module: './p.js', match: { queue: 'x' } }] }],
    ['processors[0].match.type', { processors: [{ module: './p.js', match: { type: 7 } }] }],
    ['processor_timeout_ms', { processor_timeout_ms: 0 }],
    ['publish_timeout_ms', { publish_timeout_ms: 0 }],
    ['busy_wait_ms', { busy_wait_ms: -1 }],
    ['on_uncertain', { on_uncertain: 'guess' }],
    ['on_later_same_key', { on_later_same_key: 'ignore' }],
    ['max_message_bytes', { max_message_bytes: '1MB' }],
    ['compression', { compression: 'brotli' }],
    ['fetch_max_bytes', { fetch_max_bytes: 2 ** 31 }],
    ['topic_refresh_ms', { topic_refresh_ms: 0 }],
    ['generate_correlation_id', { generate_correlation_id: 'no' }],
    ['session_timeout_ms', { session_timeout_ms: 0 }],
    ['security_protocol', { security_protocol: 'ssl' }],
    ['sasl_mechanism', { sasl_mechanism: 'GSSAPI' }],
    // What is missing
    ['servers', { servers: [] }],
    ['servers', { servers: null }],
    ['token_hashes', { token_hashes: [] }],
    ['services', { services: {} }],
    ['services', { services: undefined }],
    // Together
    ['preview_max', { preview_limit: 1, preview_max: 2 }],
    ...['health', 'summary', 'docs', 'openapi.json', 'rpc', '~unknown', '-x', 'a b', 'x'.repeat(244)].map(
      (name) => [`services.${name}`, { services: { [name]: { dlq_topic: 'd', retry_topic: 'r' } } }] as const,
    ),
    [
      `services.4706CC1B-5a2a-1f5a-9a3d-8a4d1c9b2f10`,
      { services: { '4706CC1B-5a2a-1f5a-9a3d-8a4d1c9b2f10': ['d', 'r'] } },
    ],
    ['services.wps.retry_topic', services({ retry_topic: '$original', original_topics: ['orders'] })],
    ['services.wps', { services: { wps: ['wps_dlq', '$original'] } }],
    ['services.wps.original_topics', services({ ...generic, original_topics: [] })],
    ['services.wps.strip_headers', services({ strip_headers: ['x'] })],
    ['services.wps.retry_topic', services({ retry_topic: 'wps_dlq' })],
    ['services.wps.retry_topic', services({ retry_topic: 'more_dlq' }, { ucs: ['more_dlq', 'ucs_retry'] })],
    ['services.wps', { services: { wps: ['same', 'same'] } }],
    ['services.wps.retry_topic', { ...services({}), dlq_topics: ['retry-wps'] }],
    ['services.wps.original_topics[0]', { ...services(generic), dlq_topics: ['orders'] }],
    ['services.wps.original_topics[1]', services({ ...generic, original_topics: ['orders', 'wps*'] })],
    ['services.wps.original_topics[0]', services({ ...generic, original_topics: ['*'] })],
    ['services.wps.original_topics[0]', services(generic, { ucs: ['dlq', 'orders'] })],
    ['services.ucs', services({ retry_topic: 'same' }, { ucs: ['dlq', 'same'] })],
    ['services.ucs.retry_topic', services({ retry_topic: 'retry-ucs' }, { ucs: { dlq_topic: 'dlq' } })],
    ['services.wps.aliases[0]', services({ aliases: ['wps'] })],
    ['services.wps.aliases[1]', services({ aliases: ['a', 'a'] })],
    ['services.wps.aliases[0]', services({ aliases: ['ucs'] }, { ucs: ['dlq', 'ucs_retry'] })],
    ['services.ucs.aliases[0]', services({ aliases: ['a'] }, { ucs: { dlq_topic: 'dlq', aliases: ['a'] } })],
    ['dlq_topics[0]', { dlq_topics: ['retry-x'], accept_unlisted_services: true }],
    ['services.wps.dlq_topic', { ...services({ dlq_topic: 'retry-x' }), accept_unlisted_services: true }],
  ])('is refused by the name of the key: %s (%#)', (key, given) => {
    const problems = problemsOf(() => settingsOf(given))
    expect(problems).toHaveLength(1)
    expect(problems[0]?.startsWith(`kafka.${key}: `), problems[0]).toBe(true)
    // In a file it is the same, and names the file too.
    expect(problemsOf(() => load(JSON.stringify({ kafka: { ...WHOLE, ...given } })))).toEqual(problems)
  })

  it('lets services share a DLQ topic, and send to one original topic', () => {
    const shared = { dlq_topic: 'dlq', ...generic }
    expect(settingsOf({ services: { a: shared, b: shared } }).services.size).toBe(2)
  })

  it('says where hexkit 4.x reads', () => {
    expect(problemsOf(() => settingsOf(services({ retry_topic: ' ' })))[0]).toContain(
      "'retry-SERVICE' (hexkit 4.x reads 'SERVICE-retry')",
    )
  })

  it('tells all that is wrong together', () => {
    expect(problemsOf(() => load('kafka: { enabled: true, preview_limit: 1, preview_max: 2 }'))).toHaveLength(
      4,
    )
    expect(
      problemsOf(() => load('kafka: { enabled: 1, services: { a: { dlq_topic: 1, x: 2 } } }')),
    ).toHaveLength(3)
  })

  it('warns of processors that never fit', () => {
    const processors = [{ module: './p.js', match: { service: ['wps', '~unknown', 'wsp'] } }]
    expect(kafkaWarnings({ ...WHOLE, processors })).toEqual([
      "kafka.processors[0].match.service: 'wsp' is no listed service, so it never fits",
    ])
    expect(kafkaWarnings({ ...WHOLE, processors, accept_unlisted_services: true })).toEqual([])
  })
})
