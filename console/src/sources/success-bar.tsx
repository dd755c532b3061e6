/** A share as a bar with its number. The bar is for the eye; the number says the same. */
import './sources.css'
import { Group, Progress, Text } from '@mantine/core'

/** 0.9987 as `99.8 %`: rounded down, so that 100 % means all. */
export const percent = (share: number): string => `${(Math.floor(share * 1_000) / 10).toFixed(1)} %`

const WELL = 0.99
const SOMEHOW = 0.9

/** `share` is from 0 to 1; null when there is nothing to have a share of. */
export function SuccessBar({ share, of }: { readonly share: number | null; readonly of: string }) {
  if (share === null) return <span>–</span>
  return (
    <Group gap="xs" wrap="nowrap" justify="flex-end">
      <Progress.Root w="4rem" size="sm" visibleFrom="md" aria-hidden>
        <Progress.Section
          withAria={false}
          value={share * 100}
          color={share >= WELL ? 'teal' : share >= SOMEHOW ? 'yellow' : 'red'}
        />
      </Progress.Root>
      <Text inherit component="span" title={of} miw="4rem" className="unbroken">
        {percent(share)}
      </Text>
    </Group>
  )
}
