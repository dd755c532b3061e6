import { afterEach, describe, expect, it } from 'vitest'
import { instant } from '../core/clock.ts'
import { SystemClock } from '../core/system-clock.ts'
import { closeServers, scriptedServer } from '../http/scripted-server.ts'

afterEach(closeServers)

describe('metrics', () => {
  it('count requests by route, never by what clients ask for', async () => {
    const { app } = await scriptedServer({ queues: { reload: async () => {} } })
    await app.inject({ method: 'POST', url: '/v1/queue.reload?x=1', body: '{}' })
    await app.inject({ method: 'POST', url: '/v1/guessed', body: '{}' })
    await app.inject('/guessed')
    const { body, headers } = await app.inject('/metrics')
    expect(headers['content-type']).toContain('text/plain; version=0.0.4')
    expect(body).toMatch(/http_handler_duration\{path="\/v1\/queue.reload",quantile="0.5"\} \S+/)
    expect(body).toMatch(/http_handler_duration\{path="\/v1\/queue.reload",quantile="0.99"\} \S+/)
    expect(body).toContain('bartleby_http_request_seconds_count{path="/v1/queue.reload",code="200"} 1')
    expect(body).toContain('bartleby_http_request_seconds_count{path="unserved",code="501"} 1')
    expect(body).not.toContain('guessed')
    expect(body).toContain('nodejs_eventloop_lag_seconds')
  })

  it('tell the depth of every queue', async () => {
    const oldestAt = instant(new SystemClock().now() - 60_000_000n)
    const depth = { queueName: 'a "b"', ready: 5, leased: 4, scheduled: 3, held: 1, dead: 2, oldestAt }
    const { app } = await scriptedServer({ queues: { depths: async () => [depth] } })
    const { body } = await app.inject('/metrics')
    expect(body).toContain('bartleby_queue_ready{queue="a \\"b\\""} 5')
    expect(body).toContain('bartleby_queue_leased{queue="a \\"b\\""} 4')
    expect(body).toContain('bartleby_queue_scheduled{queue="a \\"b\\""} 3')
    expect(body).toContain('bartleby_queue_held{queue="a \\"b\\""} 1')
    expect(body).toContain('bartleby_queue_dead{queue="a \\"b\\""} 2')
    expect(body).toMatch(/bartleby_queue_oldest_age_seconds\{queue="a \\"b\\""\} 6\d/)
  })

  it('are told as far as they are known while the store fails', async () => {
    const { app } = await scriptedServer({ queues: { depths: () => Promise.reject(new Error('gone')) } })
    expect((await app.inject('/metrics')).statusCode).toBe(200)
  })
})
