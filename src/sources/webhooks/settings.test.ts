import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../../config/load.ts'
import { ConfigError } from '../../core/settings/config-error.ts'
import { DEFAULT_WEBHOOK_SETTINGS } from './settings.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bartleby-config-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

const load = (text: string) => {
  const file = join(folder, 'bartleby.yaml')
  writeFileSync(file, text)
  return loadConfig({ file, env: {} })
}

const problemsOf = (text: string): readonly string[] => {
  try {
    load(text)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map((problem) => problem.replace(`${folder}/bartleby.yaml: `, ''))
  }
  return []
}

describe('webhooks in a configuration', () => {
  it('keep a list of refused addresses as it is written, also an empty one', () => {
    const refused = (text: string) => load(text).webhooks.delivery.refusedAddresses
    expect(refused('port: 1')).toEqual(['link-local', 'metadata'])
    expect(refused('webhooks: { delivery: { refusedAddresses: [] } }')).toEqual([])
    expect(refused('webhooks: { delivery: { refusedAddresses: [private] } }')).toEqual(['private'])
  })

  it('keep their defaults around what is given', () => {
    const { webhooks } = load('webhooks: { delivery: { maxRetry: 0, backoffSeconds: [1] } }')
    expect(webhooks).toEqual({
      ...DEFAULT_WEBHOOK_SETTINGS,
      delivery: { ...DEFAULT_WEBHOOK_SETTINGS.delivery, maxRetry: 0, backoffSeconds: [1] },
    })
  })

  it('take every key', () => {
    const { webhooks } = load(`
webhooks:
  openManagement: true
  api: { exposeTokens: false }
  delivery:
    maxQueue: 10000000
    workers: 250
    consumerWorkers: 5
    maxRetry: 255
    backoffSeconds: [0.5, 30]
    rationalDelaySeconds: 1
    tokenHeader: X-Our-Token
    userAgent: ours/1.0
    timeoutSeconds: 10
    refusedAddresses: [loopback, 10.0.0.0/8]
    breaker: { failures: 0, forSeconds: 1, pauseSeconds: 2, longestPauseSeconds: 3 }
  recovery: { enabled: false }
  scheduler: { intervalMs: 100, minDelayMinutes: 0, batchSize: 1 }
  dlq: { summaryIntervalSeconds: 5, batchSize: 10 }
  gatewayAuth: { mode: hmac, secret: c2VjcmV0, toleranceSeconds: 10, exemptPaths: [/_status, /debug/pprof/] }
  seed:
    channels: [{ id: c1, name: One, token: t }]
    producers: [{ id: p1 }]
    consumers: [{ id: k1, channel: c1, callbackUrl: 'http://host/hook', type: pull }]
  retention: { days: 7 }
`)
    expect(webhooks).toEqual({
      openManagement: true,
      api: { exposeTokens: false },
      delivery: {
        maxQueue: 10_000_000,
        workers: 250,
        consumerWorkers: 5,
        maxRetry: 255,
        backoffSeconds: [0.5, 30],
        rationalDelaySeconds: 1,
        tokenHeader: 'X-Our-Token',
        userAgent: 'ours/1.0',
        timeoutSeconds: 10,
        refusedAddresses: ['loopback', '10.0.0.0/8'],
        breaker: { failures: 0, forSeconds: 1, pauseSeconds: 2, longestPauseSeconds: 3 },
      },
      recovery: { enabled: false },
      scheduler: { intervalMs: 100, minDelayMinutes: 0, batchSize: 1 },
      dlq: { summaryIntervalSeconds: 5, batchSize: 10 },
      gatewayAuth: {
        mode: 'hmac',
        secret: 'c2VjcmV0',
        toleranceSeconds: 10,
        exemptPaths: ['/_status', '/debug/pprof/'],
      },
      seed: {
        channels: [{ id: 'c1', name: 'One', token: 't' }],
        producers: [{ id: 'p1' }],
        consumers: [{ id: 'k1', channel: 'c1', callbackUrl: 'http://host/hook', type: 'pull' }],
      },
      retention: { days: 7 },
    })
  })

  it.each([
    ['delivery.maxRetry', 'delivery: { maxRetry: 256 }'],
    ['delivery.maxRetry', 'delivery: { maxRetry: -1 }'],
    ['delivery.maxRetry', 'delivery: { maxRetry: five }'],
    ['delivery.maxQueue', 'delivery: { maxQueue: 0 }'],
    ['delivery.workers', 'delivery: { workers: 1.5 }'],
    ['delivery.consumerWorkers', 'delivery: { consumerWorkers: 0 }'],
    ['delivery.backoffSeconds', 'delivery: { backoffSeconds: [] }'],
    ['delivery.backoffSeconds', 'delivery: { backoffSeconds: 5 }'],
    ['delivery.backoffSeconds[1]', 'delivery: { backoffSeconds: [5, 0] }'],
    ['delivery.rationalDelaySeconds', 'delivery: { rationalDelaySeconds: 0 }'],
    ['delivery.tokenHeader', 'delivery: { tokenHeader: "a b" }'],
    ['delivery.tokenHeader', 'delivery: { tokenHeader: Content-Type }'],
    ['delivery.userAgent', 'delivery: { userAgent: "a\\nb" }'],
    ['delivery.timeoutSeconds', 'delivery: { timeoutSeconds: 0 }'],
    ['delivery.refusedAddresses[0]', 'delivery: { refusedAddresses: [nowhere] }'],
    ['delivery.breaker.failures', 'delivery: { breaker: { failures: -1 } }'],
    ['delivery.breaker.longestPauseSeconds', 'delivery: { breaker: { longestPauseSeconds: 1 } }'],
    ['recovery.enabled', 'recovery: { enabled: maybe }'],
    ['scheduler.intervalMs', 'scheduler: { intervalMs: 0 }'],
    ['scheduler.minDelayMinutes', 'scheduler: { minDelayMinutes: -1 }'],
    ['scheduler.batchSize', 'scheduler: { batchSize: 0 }'],
    ['dlq.summaryIntervalSeconds', 'dlq: { summaryIntervalSeconds: 0 }'],
    ['dlq.batchSize', 'dlq: { batchSize: 0 }'],
    ['gatewayAuth.mode', 'gatewayAuth: { mode: jwt }'],
    ['gatewayAuth.secret', 'gatewayAuth: { mode: hmac }'],
    ['gatewayAuth.secret', 'gatewayAuth: { mode: hmac, secret: "not base64!" }'],
    ['gatewayAuth.secret', 'gatewayAuth: { secret: "" }'],
    ['gatewayAuth.toleranceSeconds', 'gatewayAuth: { toleranceSeconds: 0 }'],
    ['gatewayAuth.exemptPaths[0]', 'gatewayAuth: { exemptPaths: [metrics] }'],
    ['gatewayAuth.exemptPaths[0]', 'gatewayAuth: { exemptPaths: [/metrics/../x] }'],
    ['gatewayAuth.exemptPaths[0]', 'gatewayAuth: { exemptPaths: ["//metrics"] }'],
    ['seed.producers[0].id', 'seed: { producers: [{ name: x }] }'],
    ['seed.producers[0].token', 'seed: { producers: [{ id: p, token: "" }] }'],
    ['seed.producers[1].id', 'seed: { producers: [{ id: p }, { id: p }] }'],
    ['seed.consumers[0].channel', 'seed: { consumers: [{ id: k, channel: c, callbackUrl: "http://host" }] }'],
    [
      'seed.consumers[0].callbackUrl',
      'seed: { channels: [{ id: c }], consumers: [{ id: k, channel: c, callbackUrl: "ftp://host" }] }',
    ],
    [
      'seed.consumers[0].type',
      'seed: { channels: [{ id: c }], consumers: [{ id: k, channel: c, callbackUrl: "http://h", type: x }] }',
    ],
    ['retention.days', 'retention: { days: -1 }'],
    ['maxRetry', 'maxRetry: 3'],
  ])('are refused by the name of the key: %s (%#)', (key, text) => {
    const problems = problemsOf(`webhooks:\n  ${text}\n`)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(new RegExp(`^webhooks\\.${key.replace(/[.[\]]/g, '\\$&')}: `))
  })

  it('keep their secrets to themselves', () => {
    const text = `webhooks:
  gatewayAuth: { mode: hmac, secret: "hunter-2" }
  seed: { producers: [{ id: p, token: "${'hunter-3'.repeat(40)}" }] }
`
    expect(problemsOf(text)).toHaveLength(2)
    expect(problemsOf(text).join('\n')).not.toContain('hunter')
  })

  it('may have one id on two channels of the seed', () => {
    const seed = `seed:
    channels: [{ id: a }, { id: b }]
    consumers: [{ id: k, channel: a, callbackUrl: 'http://h' }, { id: k, channel: b, callbackUrl: 'http://h' }]`
    expect(problemsOf(`webhooks:\n  ${seed}`)).toEqual([])
  })
})
