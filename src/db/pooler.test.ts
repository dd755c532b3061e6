import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { expect, it } from 'vitest'
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
  const silent = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.once('data', () => socket.write(LET_IN))
  })
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const address = silent.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const db = openDatabase(`postgres://u:p@127.0.0.1:${port}/x?query_timeout=3600000`, { poolSize: 1 })
  try {
    const one = sql('test.one', 'SELECT 1 AS one')
    const asked = [{ apart: false }, { apart: true }].map((options) =>
      db.snapshot('test', (session) => session.rows(one), options),
    )
    await Promise.all(asked.map((answer) => expect(answer).rejects.toThrow(/^cannot connect to PostgreSQL/)))
  } finally {
    await db.close()
    for (const socket of sockets) socket.destroy()
    silent.close()
  }
})
