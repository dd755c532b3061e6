/** What a dry run says would be sent. */
import { Stack, Text } from '@mantine/core'
import { bytesOf } from '../../../src/client/bytes.ts'
import type { RetryPreview } from '../api/types.ts'
import { Fact, Facts } from '../kit/facts.tsx'
import { byteSize } from '../time/format.ts'
import { PayloadView } from './payload-view.tsx'

export function DryRunResult({ preview }: { readonly preview: RetryPreview }) {
  const { payload, payloadEncoding } = preview
  return (
    <Stack gap="sm">
      <Text size="sm">
        It would be sent to <strong>{preview.queue}</strong>
        {preview.edited ? ', edited' : ', byte for byte as it came'}. Nothing was written.
      </Text>
      <Facts>
        <Fact name="Size">{byteSize(bytesOf(payload, payloadEncoding).length)}</Fact>
        <Fact name="Kind">{preview.kind}</Fact>
        <Fact name="Encoding">{preview.encoding}</Fact>
        <Fact name="Reference">{preview.reference}</Fact>
        <Fact name="Correlation id">{preview.correlationId}</Fact>
        <Fact name="SHA-256">{preview.payloadSha256}</Fact>
      </Facts>
      <PayloadView text={payload} encoding={payloadEncoding} label="What would be sent" />
    </Stack>
  )
}
