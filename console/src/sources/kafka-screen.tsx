/** Kafka. */
import { Page } from '../kit/page.tsx'

export function KafkaScreen() {
  return <Page title="Kafka">{null}</Page>
}
