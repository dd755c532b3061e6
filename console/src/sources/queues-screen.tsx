/** Queues. */
import { Page } from '../kit/page.tsx'

export function QueuesScreen() {
  return <Page title="Queues">{null}</Page>
}
