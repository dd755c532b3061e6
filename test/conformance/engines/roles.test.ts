/** Who may do what once tokens are configured, and whose name is written down. */
import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { apiCall, type Listed, offices, pathTo, unique } from './bed.ts'

const token = (name: string) => ({
  name,
  role: name.split('-')[0],
  sha256: createHash('sha256').update(`secret of ${name}`).digest('hex'),
})

const tokens = ['viewer-vera', 'operator-olaf', 'admin-ada'].map(token)

offices(
  'with tokens',
  (desk) => {
    const as = (name: string) => ({ authorization: `Bearer secret of ${name}` })
    const capture = (engine = 'hmac') =>
      apiCall(desk.wire, 'POST', '/api/dlq', {
        headers: as('operator-olaf'),
        body: { engine, originalMessage: 'x', errorMessage: 'e', sourceId: unique('source') },
      })

    const key = async (): Promise<Listed> => {
      const { status, data } = await capture()
      expect(status).toBe(201)
      return data as Listed // the reply of a capture
    }

    it("resolvedBy is the token's name", async () => {
      for (const name of ['operator-olaf', 'admin-ada']) {
        const letter = await key()
        const body = { status: 'Resolved', resolutionNotes: 'x', resolvedBy: 'somebody else' }
        const given = await desk.api('PATCH', pathTo(letter), { body, headers: as(name) })
        if (given.status === 400) {
          const honest = { status: 'Resolved', resolutionNotes: 'x' }
          await desk.ok('PATCH', pathTo(letter), { body: honest, headers: as(name) })
        }
        const { data } = await desk.api('GET', pathTo(letter), { headers: as('viewer-vera') })
        expect(data).toMatchObject({ status: 'Resolved', resolvedBy: name })
      }
    })

    it('a viewer may read everything and change nothing', async () => {
      const letter = await key()
      const headers = as('viewer-vera')
      const [entry] = (await desk.ok<{ items: { rowKey: string }[] }>('GET', '/api/history', { headers }))
        .items
      const pages = ['/api/dlq', pathTo(letter), '/api/history', '/api/counts', '/api/signatures']
      for (const path of [...pages, `/api/history/hmac/${encodeURIComponent(entry?.rowKey ?? '')}`]) {
        await desk.ok('GET', path, { headers })
      }
      const body = { status: 'Resolved', resolutionNotes: 'x' }
      await desk.refuses('PATCH', pathTo(letter), { headers, body }, 403)
      await desk.refuses('POST', pathTo(letter, '/retry'), { headers }, 403)
      await desk.refuses('POST', '/api/dlq/expire', { headers, body: { olderThanDays: 1 } }, 403)
      await desk.refuses('POST', '/api/dlq', { headers, body: {} }, 403)
      await desk.refuses('POST', '/api/history', { headers, body: {} }, 403)
      expect((await desk.ok<Listed>('GET', pathTo(letter), { headers })).status).toBe('Pending')
    })

    it('nobody gets in without a token, whatever they ask', async () => {
      const letter = await key()
      for (const headers of [{}, { authorization: 'Bearer wrong' }, { authorization: 'Basic eDp5' }]) {
        for (const path of ['/api/dlq', pathTo(letter), '/api/history', '/api/counts', '/api/signatures']) {
          await desk.refuses('GET', path, { headers }, 401)
        }
        await desk.refuses('POST', pathTo(letter, '/retry'), { headers }, 401)
        await desk.refuses('POST', '/api/dlq', { headers, body: {} }, 401)
        await desk.refuses('GET', '/api/nothing', { headers }, 401)
      }
    })

    it('secrets are in no answer', async () => {
      const letter = await key()
      const headers = as('admin-ada')
      for (const path of ['/api/dlq', pathTo(letter), '/api/history']) {
        const { data } = await desk.api('GET', path, { headers })
        expect(JSON.stringify(data)).not.toContain('secret of')
      }
    })
  },
  { settings: { auth: { tokens } }, liveClock: true },
)
