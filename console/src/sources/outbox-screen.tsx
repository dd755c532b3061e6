/** Outbox. */
import { Page } from '../kit/page.tsx'

export function OutboxScreen() {
  return <Page title="Outbox">{null}</Page>
}
