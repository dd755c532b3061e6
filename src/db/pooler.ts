/**
 * Poolers that stand between a client and PostgreSQL, and may lend it another connection for each transaction. They give themselves
 * away: the process that a client was told it talks to is not the one that answers.
 */

interface ToldClient {
  query(question: { text: string; query_timeout: number }): Promise<{ readonly rows: readonly unknown[] }>
}

/** Whether somebody stands between. One trip, which is part of connecting: it may take `timeoutMs`. */
export async function isPooled(client: ToldClient, timeoutMs: number): Promise<boolean> {
  // Set by `pg` when it connects; its types do not tell.
  const toldPid: unknown = Reflect.get(client, 'processID')
  const { rows } = await client.query({
    text: 'SELECT pg_backend_pid() AS pid',
    query_timeout: timeoutMs,
  })
  const [row] = rows
  return typeof row !== 'object' || row === null || !('pid' in row) || row.pid !== toldPid
}
