/**
 * The layouts of outboxes that lie in the office's own store, for use within its transactions. There a table cannot be
 * looked at: on SQLite the look would wait for the transaction, and the transaction for the look.
 */
import { failure } from '../../core/errors.ts'
import type { Layout } from '../layout.ts'
import type { OutboxPost } from '../post.ts'

const known = new WeakMap<OutboxPost, Layout>()

/** The layout as it is; from now on it is known. */
export async function learnLayout(post: OutboxPost): Promise<Layout> {
  const layout = await post.layout()
  known.set(post, layout)
  return layout
}

/** The layout as it was last seen; refuses for the moment when nobody has looked yet. */
export function knownLayout(post: OutboxPost): Layout {
  const layout = known.get(post)
  if (layout === undefined) throw failure('letter_outbox_away', { outbox: post.name })
  return layout
}
