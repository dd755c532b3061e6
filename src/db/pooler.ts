/**
 * Poolers that stand between a client and PostgreSQL, and may lend it another connection for each transaction. They give themselves
 * away: the process that a client was told it talks to is not the one that answers.
 */

interface ToldClient {
  query(text: string): Promise<{ readonly rows: readonly unknown[] }>
}

/** Whether somebody stands between. One trip. */
export async function isPooled(client: ToldClient): Promise<boolean> {
  // Set by `pg` when it connects; its types do not tell.
  const toldPid: unknown = Reflect.get(client, 'processID')
  const { rows } = await client.query('SELECT pg_backend_pid() AS pid')
  const [row] = rows
  return typeof row !== 'object' || row === null || !('pid' in row) || row.pid !== toldPid
}
