import { afterEach, describe, expect, it } from 'vitest'
import { closeServers, scriptedServer } from '../../test/world/scripted-server.ts'

afterEach(closeServers)

describe('the OpenAPI document', () => {
  it('describes every call in both formats, with every code, from the messages themselves', async () => {
    const { app } = await scriptedServer()
    const document = (await app.inject('/openapi.json')).json()
    expect(document.openapi).toMatch(/^3\.1\./)
    const produce = document.paths['/v1/queue.produce'].post
    expect(produce.requestBody.content).toEqual({
      'application/json': { schema: { $ref: '#/components/schemas/QueueProduceRequest' } },
      'application/protobuf': { schema: expect.objectContaining({ type: 'string', format: 'binary' }) },
    })
    expect(Object.keys(produce.responses)).toEqual([
      '200',
      '400',
      '401',
      '403',
      '408',
      '421',
      '429',
      '453',
      '454',
      '455',
      '500',
      '501',
    ])
    expect(document.components.schemas.QueueProduceItem.properties).toEqual({
      encoding: { type: 'string' },
      kind: { type: 'string' },
      reference: { type: 'string' },
      enqueue_at: { type: 'string', format: 'date-time' },
      bytes: { type: 'string', format: 'byte' },
      utf8: { type: 'string' },
    })
    expect(document.components.schemas.QueueStatsResponse.properties.logicalQueues).toEqual({
      type: 'array',
      items: { $ref: '#/components/schemas/QueueLogicalStats' },
    })
    expect(document.paths['/v1/test.clock']).toBeUndefined()
  })

  it('names the status of the dead, as clients of webhooks generate it', async () => {
    const { app } = await scriptedServer()
    const document = (await app.inject('/openapi.json')).json()
    expect(document.paths['/dlq-status'].get.responses['200'].content['application/json']).toEqual({
      schema: { $ref: '#/components/schemas/DLQStatus' },
    })
    const { consumers } = document.components.schemas.DLQStatus.properties
    expect(Object.keys(consumers.items.properties)).toEqual([
      'channelId',
      'channelName',
      'consumerId',
      'consumerName',
      'deadCount',
    ])
  })

  it('refers only to what it contains', async () => {
    const { app } = await scriptedServer()
    const text = (await app.inject('/openapi.json')).body
    const { schemas } = JSON.parse(text).components
    for (const [, name] of text.matchAll(/"\$ref":"([^"]+)"/g)) {
      expect(name).toMatch(/^#\/components\/schemas\/\w+$/)
      expect(Object.keys(schemas)).toContain(name?.split('/').at(-1))
    }
  })

  it('is readable as a page that loads and runs nothing', async () => {
    const { app } = await scriptedServer()
    const page = await app.inject('/docs')
    expect(page.headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-/)
    expect(page.body).not.toMatch(/<script|src=|https?:\/\/(?!127\.0\.0\.1)/)
    expect(page.body).toContain('POST /v1/queue.produce')
    expect(page.body).toContain('curl -X POST')
  })
})
