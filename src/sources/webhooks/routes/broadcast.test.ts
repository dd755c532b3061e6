import { afterEach, describe, expect, it } from 'vitest'
import { closeServers, dial, received, type Script } from '../../../../test/world/scripted-server.ts'
import { SENDER, scriptedWebhooks } from '../../../../test/world/webhooks/scripted.ts'
import type { MessageDraft } from '../messages/broadcasts.ts'
import { Refused } from '../refusal.ts'

afterEach(closeServers)

describe('a broadcast', () => {
  const post = async (
    headers: Record<string, string | string[]>,
    body: string | Buffer,
    script: Omit<Script, 'webhooks'> = {},
  ) => {
    const drafts: MessageDraft[] = []
    const accept = async (_: unknown, draft: MessageDraft) => {
      drafts.push(draft)
      return { messageId: draft.messageId ?? 'new', scheduled: draft.scheduledFor !== null }
    }
    const { app } = await scriptedWebhooks({ broadcasts: { authorise: async () => SENDER, accept } }, script)
    const reply = await app.inject({ method: 'POST', url: '/channel/c%20c/broadcast', headers, body })
    return { reply, draft: drafts[0] }
  }

  it('is answered with where its message is, and nothing else', async () => {
    const { reply, draft } = await post({ 'x-broker-message-id': 'é/1' }, Buffer.from([0, 255]))
    expect([reply.statusCode, reply.body]).toEqual([201, ''])
    expect(reply.headers).toMatchObject({
      location: '/channel/c%20c/message/%C3%A9%2F1',
      'content-length': '0',
    })
    expect(reply.headers).not.toHaveProperty('content-type')
    expect(draft?.content).toEqual({
      payload: Buffer.from([0, 255]),
      contentType: 'application/octet-stream',
      priority: 0,
      headers: [],
    })
  })

  it.each([
    ['UTF-8', Buffer.from('é1').toString('latin1')],
    ['Latin-1', '\xe91'],
  ])('may have an id that is not ASCII, in %s', async (_, sent) => {
    const { draft } = await post({ 'x-broker-message-id': sent }, 'x')
    expect(draft?.messageId).toBe('é1')
  })

  it('counts repeated headers by their first value', async () => {
    const { draft } = await post(
      { 'x-broker-message-id': ['a,b', 'c'], 'x-broker-message-priority': ['7', '8'] },
      'x',
    )
    expect(draft).toMatchObject({ messageId: 'a,b', content: { priority: 7 } })
  })

  it('is refused for its size, its date and its emptiness, in this order', async () => {
    const small = { http: { maxBodyBytes: 4 } }
    const bad = { 'x-broker-scheduled-for': 'tomorrow' }
    const statusOf = async (headers: Record<string, string>, body: string) => {
      const { reply, draft } = await post(headers, body, small)
      expect(draft).toBeUndefined()
      return [reply.statusCode, reply.body]
    }
    expect(await statusOf(bad, 'large')).toEqual([413, 'request body too large'])
    expect((await statusOf(bad, ''))[0]).toBe(400)
    expect((await statusOf({ 'x-broker-scheduled-for': '2001-01-01T00:00:00Z' }, ''))[0]).toBe(412)
    expect(await statusOf({}, '')).toEqual([400, 'Necessary information missing for persistence'])
    expect((await post({}, 'fits', small)).reply.statusCode).toBe(201)
  })

  it('is not read before its sender is known, nor further than it may be', async () => {
    const refuse = async () => {
      throw new Refused('producer_token_wrong')
    }
    const refusing = await scriptedWebhooks({ broadcasts: { authorise: refuse } })
    const allowing = await scriptedWebhooks(
      { broadcasts: { authorise: async () => SENDER } },
      { http: { maxBodyBytes: 1_000 } },
    )
    for (const [started, status] of [
      [refusing, '403 Forbidden'],
      [allowing, '413 Payload Too Large'],
    ] as const) {
      const socket = await dial(started)
      const answer = new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(String(chunk))))
      // The body never comes to an end.
      socket.write(
        `POST /channel/c/broadcast HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n${'x'.repeat(2_000)}`,
      )
      expect(await answer).toContain(`HTTP/1.1 ${status}\r\n`)
      socket.destroy()
    }
  })

  it('that takes longer than it may is cut off', async () => {
    const started = await scriptedWebhooks(
      { broadcasts: { authorise: async () => SENDER } },
      { http: { readTimeoutSeconds: 0.05 } },
    )
    const socket = await dial(started)
    const answer = received(socket)
    socket.write('POST /channel/c/broadcast HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nslow')
    expect(await answer).toBe('')
  })
})
