"""The --oidc-* options as an AuthenticationConfiguration."""

from __future__ import annotations

from ostinato.server.access.authentication.oidc.configuration import (
    AuthenticationConfiguration,
    ClaimMappings,
    ClaimValidationRule,
    Issuer,
    JWTAuthenticator,
    PrefixedClaimOrExpression,
)
from ostinato.server.access.authentication.settings import AuthenticationSettingsError, OidcSettings


def configuration_of(settings: OidcSettings) -> AuthenticationConfiguration:
    """Convert the options; AuthenticationSettingsError if the CA file cannot be read."""
    authority = ""
    if settings.authority is not None:
        try:
            authority = settings.authority.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise AuthenticationSettingsError(f"cannot read {settings.authority}: {error}") from error
    prefix = settings.username_prefix
    if not prefix and settings.username_claim != "email":
        prefix = f"{settings.issuer_url}#"
    username = PrefixedClaimOrExpression(claim=settings.username_claim, prefix="" if prefix == "-" else prefix)
    groups = PrefixedClaimOrExpression()
    if settings.groups_claim:
        groups = PrefixedClaimOrExpression(claim=settings.groups_claim, prefix=settings.groups_prefix)
    authenticator = JWTAuthenticator(
        issuer=Issuer(url=settings.issuer_url, audiences=(settings.client_id,), certificate_authority=authority),
        claim_mappings=ClaimMappings(username=username, groups=groups),
        claim_validation_rules=tuple(
            ClaimValidationRule(claim=claim, required_value=value) for claim, value in settings.required_claims
        ),
    )
    return AuthenticationConfiguration(jwt=(authenticator,))
