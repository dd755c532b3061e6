import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { expect, it, vi } from 'vitest'
import { sql } from './database.ts'
import { openDatabase } from './open.ts'

/** Signed in, process 7, ready: what a client is told before it asks anything. */
const LET_IN = Buffer.from([
  ...[0x52, 0, 0, 0, 8, 0, 0, 0, 0],
  ...[0x4b, 0, 0, 0, 12, 0, 0, 0, 7, 0, 0, 0, 9],
  ...[0x5a, 0, 0, 0, 5, 0x49],
])

it('does not wait for the first answer longer than for the connection, however long answers may take', async () => {
  const sockets: Socket[] = []
  let asked = 0
  const silent = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.once('data', () => {
      socket.write(LET_IN)
      socket.once('data', () => asked++)
    })
  })
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const address = silent.address()
  const port = typeof address === 'object' ? address?.port : undefined
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const db = openDatabase(`postgres://u:p@127.0.0.1:${port}/x?query_timeout=3600000`, { poolSize: 1 })
  try {
    const one = sql('test.one', 'SELECT 1 AS one')
    const refused = [{ apart: false }, { apart: true }].map((options) =>
      expect(db.snapshot('test', (session) => session.rows(one), options)).rejects.toThrow(
        /^cannot connect to PostgreSQL/,
      ),
    )
    await expect.poll(() => asked).toBe(refused.length)
    await vi.advanceTimersByTimeAsync(5_000)
    await Promise.all(refused)
  } finally {
    vi.useRealTimers()
    await db.close()
    for (const socket of sockets) socket.destroy()
    silent.close()
  }
})
