/** Every path of the webhook API: which methods it takes, and what is said to the others, to OPTIONS, HEAD and a slash too many. */
import { describe, expect, it } from 'vitest'
import { brokers, expectStatus } from './bed.ts'

/** Paths with the methods that they take, OPTIONS aside. */
const PATHS: readonly (readonly [path: string, methods: readonly string[]])[] = [
  ['/producers', ['GET']],
  ['/channels', ['GET']],
  ['/producer/p', ['GET', 'PUT']],
  ['/channel/c', ['GET', 'PUT']],
  ['/channel/c/consumers', ['GET']],
  ['/channel/c/consumer/k', ['DELETE', 'GET', 'PUT']],
  ['/channel/c/broadcast', ['POST']],
  ['/channel/c/messages', ['GET']],
  ['/channel/c/message/m', ['GET']],
  ['/channel/c/messages-status', ['GET']],
  ['/channel/c/scheduled-messages', ['GET']],
  ['/channel/c/scheduled-message/m', ['GET']],
  ['/channel/c/consumer/k/queued-jobs', ['GET']],
  ['/channel/c/consumer/k/job/j', ['DELETE', 'GET', 'POST']],
  ['/channel/c/consumer/k/job/j/requeue-dead-job', ['POST']],
  ['/channel/c/consumer/k/dlq', ['DELETE', 'GET', 'POST']],
  ['/job-status', ['GET']],
  ['/dlq-status', ['GET']],
  ['/metrics', ['GET']],
  ['/_status', ['GET']],
]

const METHODS = ['DELETE', 'GET', 'PATCH', 'POST', 'PUT', 'HEAD'] as const

const UNKNOWN = [
  '/nope',
  '/producer',
  '/channel',
  '/channel/c/nope',
  '/channel/c/consumer',
  '/channel/c/consumer/k/job',
  '/Producers',
  '/CHANNEL/c',
  '/debug/pprof/',
  '/debug/pprof/heap',
] as const

brokers('paths', (broker) => {
  describe.each(PATHS)('%s', (path, methods) => {
    const allow = [...methods, 'OPTIONS'].sort().join(', ')

    it('tells its methods to OPTIONS', async () => {
      const answer = await expectStatus(200, broker().client.send('OPTIONS', path))
      expect(answer.headers.allow).toBe(allow)
      expect(answer.text).toBe('')
    })

    it.each(METHODS.filter((method) => !methods.includes(method)))('refuses %s', async (method) => {
      const answer = await broker().client.send(method, path)
      expect({ status: answer.status, ...answer.headers }).toMatchObject({
        status: 405,
        allow,
        'content-type': 'text/plain; charset=utf-8',
        'x-content-type-options': 'nosniff',
        'x-request-id': expect.stringMatching(/^[0-9a-v]{19}[0g]$/),
      })
      expect(answer.text).toBe(method === 'HEAD' ? '' : 'Method Not Allowed\n')
    })

    it.each(methods)('sends %s with a slash too many to the path without', async (method) => {
      const answer = await broker().client.send(method, `${path}/`)
      expect([answer.status, answer.headers.location]).toEqual([method === 'GET' ? 301 : 307, path])
    })
  })

  it.each(UNKNOWN)('%s is unknown', async (path) => {
    for (const method of ['GET', 'POST']) {
      const answer = await broker().client.send(method, path)
      expect({ status: answer.status, text: answer.text, ...answer.headers }).toMatchObject({
        status: 404,
        text: '404 page not found\n',
        'content-type': 'text/plain; charset=utf-8',
        'x-content-type-options': 'nosniff',
        'x-request-id': expect.stringMatching(/^[0-9a-v]{19}[0g]$/),
      })
    }
  })

  it('answers have the id of their request, or a new one each', async () => {
    const given = await broker().client.get('/producers', { 'X-Request-ID': 'mine/1 x' })
    expect(given.headers['x-request-id']).toBe('mine/1 x')
    const ids = await Promise.all([1, 2].map(() => broker().client.get('/producer/none')))
    const [one, two] = ids.map((answer) => answer.headers['x-request-id'])
    expect(one).toMatch(/^[0-9a-v]{19}[0g]$/)
    expect(two).not.toBe(one)
  })
})
