/** The dry run beside an edit: what would be sent of what stands in the field now. */
import { Alert, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { type Edit, previewRetry } from '../acts/calls.ts'
import { reasonOf } from '../api/call.ts'
import type { LetterKey, RetryPreview } from '../api/types.ts'
import { ActButton } from '../kit/act-button.tsx'
import { DryRunResult } from './dry-run-result.tsx'

export interface EditDryRunProps {
  readonly letter: LetterKey
  readonly edit: Edit
  readonly refusal: string | null
}

interface Result {
  readonly edit: Edit
  readonly preview: RetryPreview | null
  readonly refusal: string | null
}

export function EditDryRun({ letter, edit, refusal }: EditDryRunProps) {
  const [result, setResult] = useState<Result | null>(null)
  const [isBusy, setBusy] = useState(false)
  const run = async () => {
    setBusy(true)
    try {
      setResult({ edit, preview: await previewRetry(letter, edit), refusal: null })
    } catch (error) {
      setResult({ edit, preview: null, refusal: reasonOf(error) })
    } finally {
      setBusy(false)
    }
  }
  return (
    <Stack gap="sm" align="flex-start">
      <ActButton
        size="compact-sm"
        variant="default"
        needs="operator"
        refusal={refusal}
        loading={isBusy}
        onClick={() => void run()}
      >
        Dry run
      </ActButton>
      <div role="status" className="dry-run">
        {result === null && (
          <Text size="sm" c="var(--quiet)">
            Asks the server what would be sent, and writes nothing.
          </Text>
        )}
        {result !== null && result.edit.payload !== edit.payload && (
          <Text size="sm" fw={600}>
            The text has changed since this dry run.
          </Text>
        )}
        {result?.refusal != null && (
          <Alert color="red" title="Would be refused">
            {result.refusal}
          </Alert>
        )}
        {result?.preview != null && <DryRunResult preview={result.preview} />}
      </div>
    </Stack>
  )
}
