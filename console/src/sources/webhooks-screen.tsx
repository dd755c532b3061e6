/** Webhooks. */
import { Page } from '../kit/page.tsx'

export function WebhooksScreen() {
  return <Page title="Webhooks">{null}</Page>
}
